module {
	func.func @sdsc_bundle(%arg_0_base_addr: !sdscbundle.input_arg<index>, %arg_1_base_addr: !sdscbundle.input_arg<index>, %arg_2_base_addr: !sdscbundle.input_arg<index>, %arg_3_base_addr: !sdscbundle.input_arg<index>, %arg_4_base_addr: !sdscbundle.input_arg<index>) {
		%arg_0 = sdscbundle.input_arg_extract value from %arg_0_base_addr : !sdscbundle.input_arg<index> -> index
		%arg_1 = sdscbundle.input_arg_extract value from %arg_1_base_addr : !sdscbundle.input_arg<index> -> index
		%arg_2 = sdscbundle.input_arg_extract value from %arg_2_base_addr : !sdscbundle.input_arg<index> -> index
		%arg_3 = sdscbundle.input_arg_extract value from %arg_3_base_addr : !sdscbundle.input_arg<index> -> index
		%arg_4 = sdscbundle.input_arg_extract value from %arg_4_base_addr : !sdscbundle.input_arg<index> -> index
		%arg_0_core_offset_2560 = arith.constant 2560 : index
		%arg_0_core_2560 = arith.addi %arg_0, %arg_0_core_offset_2560 : index
		%arg_0_core_offset_5120 = arith.constant 5120 : index
		%arg_0_core_5120 = arith.addi %arg_0, %arg_0_core_offset_5120 : index
		%arg_0_core_offset_7680 = arith.constant 7680 : index
		%arg_0_core_7680 = arith.addi %arg_0, %arg_0_core_offset_7680 : index
		%arg_0_core_offset_10240 = arith.constant 10240 : index
		%arg_0_core_10240 = arith.addi %arg_0, %arg_0_core_offset_10240 : index
		%arg_0_core_offset_12800 = arith.constant 12800 : index
		%arg_0_core_12800 = arith.addi %arg_0, %arg_0_core_offset_12800 : index
		%arg_0_core_offset_15360 = arith.constant 15360 : index
		%arg_0_core_15360 = arith.addi %arg_0, %arg_0_core_offset_15360 : index
		%arg_0_core_offset_17920 = arith.constant 17920 : index
		%arg_0_core_17920 = arith.addi %arg_0, %arg_0_core_offset_17920 : index
		%arg_0_core_offset_20480 = arith.constant 20480 : index
		%arg_0_core_20480 = arith.addi %arg_0, %arg_0_core_offset_20480 : index
		%arg_0_core_offset_23040 = arith.constant 23040 : index
		%arg_0_core_23040 = arith.addi %arg_0, %arg_0_core_offset_23040 : index
		%arg_0_core_offset_25600 = arith.constant 25600 : index
		%arg_0_core_25600 = arith.addi %arg_0, %arg_0_core_offset_25600 : index
		%arg_0_core_offset_28160 = arith.constant 28160 : index
		%arg_0_core_28160 = arith.addi %arg_0, %arg_0_core_offset_28160 : index
		%arg_0_core_offset_30720 = arith.constant 30720 : index
		%arg_0_core_30720 = arith.addi %arg_0, %arg_0_core_offset_30720 : index
		%arg_0_core_offset_33280 = arith.constant 33280 : index
		%arg_0_core_33280 = arith.addi %arg_0, %arg_0_core_offset_33280 : index
		%arg_0_core_offset_35840 = arith.constant 35840 : index
		%arg_0_core_35840 = arith.addi %arg_0, %arg_0_core_offset_35840 : index
		%arg_0_core_offset_38400 = arith.constant 38400 : index
		%arg_0_core_38400 = arith.addi %arg_0, %arg_0_core_offset_38400 : index
		%arg_0_core_offset_40960 = arith.constant 40960 : index
		%arg_0_core_40960 = arith.addi %arg_0, %arg_0_core_offset_40960 : index
		%arg_0_core_offset_43520 = arith.constant 43520 : index
		%arg_0_core_43520 = arith.addi %arg_0, %arg_0_core_offset_43520 : index
		%arg_4_core_offset_2560 = arith.constant 2560 : index
		%arg_4_core_2560 = arith.addi %arg_4, %arg_4_core_offset_2560 : index
		%arg_4_core_offset_5120 = arith.constant 5120 : index
		%arg_4_core_5120 = arith.addi %arg_4, %arg_4_core_offset_5120 : index
		%arg_4_core_offset_7680 = arith.constant 7680 : index
		%arg_4_core_7680 = arith.addi %arg_4, %arg_4_core_offset_7680 : index
		%arg_4_core_offset_10240 = arith.constant 10240 : index
		%arg_4_core_10240 = arith.addi %arg_4, %arg_4_core_offset_10240 : index
		%arg_4_core_offset_12800 = arith.constant 12800 : index
		%arg_4_core_12800 = arith.addi %arg_4, %arg_4_core_offset_12800 : index
		%arg_4_core_offset_15360 = arith.constant 15360 : index
		%arg_4_core_15360 = arith.addi %arg_4, %arg_4_core_offset_15360 : index
		%arg_4_core_offset_17920 = arith.constant 17920 : index
		%arg_4_core_17920 = arith.addi %arg_4, %arg_4_core_offset_17920 : index
		%arg_4_core_offset_20480 = arith.constant 20480 : index
		%arg_4_core_20480 = arith.addi %arg_4, %arg_4_core_offset_20480 : index
		%arg_4_core_offset_23040 = arith.constant 23040 : index
		%arg_4_core_23040 = arith.addi %arg_4, %arg_4_core_offset_23040 : index
		%arg_4_core_offset_25600 = arith.constant 25600 : index
		%arg_4_core_25600 = arith.addi %arg_4, %arg_4_core_offset_25600 : index
		%arg_4_core_offset_28160 = arith.constant 28160 : index
		%arg_4_core_28160 = arith.addi %arg_4, %arg_4_core_offset_28160 : index
		%arg_4_core_offset_30720 = arith.constant 30720 : index
		%arg_4_core_30720 = arith.addi %arg_4, %arg_4_core_offset_30720 : index
		%arg_4_core_offset_33280 = arith.constant 33280 : index
		%arg_4_core_33280 = arith.addi %arg_4, %arg_4_core_offset_33280 : index
		%arg_4_core_offset_35840 = arith.constant 35840 : index
		%arg_4_core_35840 = arith.addi %arg_4, %arg_4_core_offset_35840 : index
		%arg_4_core_offset_38400 = arith.constant 38400 : index
		%arg_4_core_38400 = arith.addi %arg_4, %arg_4_core_offset_38400 : index
		%arg_4_core_offset_40960 = arith.constant 40960 : index
		%arg_4_core_40960 = arith.addi %arg_4, %arg_4_core_offset_40960 : index
		%arg_4_core_offset_43520 = arith.constant 43520 : index
		%arg_4_core_43520 = arith.addi %arg_4, %arg_4_core_offset_43520 : index
		sdscbundle.sdsc_execute (%arg_0, %arg_0_core_2560, %arg_0_core_5120, %arg_0_core_7680, %arg_0_core_10240, %arg_0_core_12800, %arg_0_core_15360, %arg_0_core_17920, %arg_0_core_20480, %arg_0_core_23040, %arg_0_core_25600, %arg_0_core_28160, %arg_0_core_30720, %arg_0_core_33280, %arg_0_core_35840, %arg_0_core_38400, %arg_0_core_40960, %arg_0_core_43520, %arg_1) {sdsc_filename="sdsc_0.json", "symbol_ids"=[-1, -2, -3, -4, -5, -6, -7, -8, -9, -10, -11, -12, -13, -14, -15, -16, -17, -18, -19]}
		sdscbundle.sdsc_execute () {sdsc_filename="sdsc_1.json", "symbol_ids"=[]}
		sdscbundle.sdsc_execute (%arg_2) {sdsc_filename="sdsc_2.json", "symbol_ids"=[-20]}
		sdscbundle.sdsc_execute (%arg_3) {sdsc_filename="sdsc_3.json", "symbol_ids"=[-21]}
		sdscbundle.sdsc_execute () {sdsc_filename="sdsc_4.json", "symbol_ids"=[]}
		sdscbundle.sdsc_execute () {sdsc_filename="sdsc_5.json", "symbol_ids"=[]}
		sdscbundle.sdsc_execute () {sdsc_filename="sdsc_6.json", "symbol_ids"=[]}
		sdscbundle.sdsc_execute () {sdsc_filename="sdsc_7.json", "symbol_ids"=[]}
		sdscbundle.sdsc_execute (%arg_4, %arg_4_core_2560, %arg_4_core_5120, %arg_4_core_7680, %arg_4_core_10240, %arg_4_core_12800, %arg_4_core_15360, %arg_4_core_17920, %arg_4_core_20480, %arg_4_core_23040, %arg_4_core_25600, %arg_4_core_28160, %arg_4_core_30720, %arg_4_core_33280, %arg_4_core_35840, %arg_4_core_38400, %arg_4_core_40960, %arg_4_core_43520) {sdsc_filename="sdsc_8.json", "symbol_ids"=[-22, -23, -24, -25, -26, -27, -28, -29, -30, -31, -32, -33, -34, -35, -36, -37, -38, -39]}
		return
	}
}
