module {
	func.func @sdsc_bundle(%arg_0_base_addr: !sdscbundle.input_arg<index>, %arg_1_base_addr: !sdscbundle.input_arg<index>, %arg_2_base_addr: !sdscbundle.input_arg<index>, %arg_3_base_addr: !sdscbundle.input_arg<index>, %arg_4_base_addr: !sdscbundle.input_arg<index>) {
		%arg_0 = sdscbundle.input_arg_extract value from %arg_0_base_addr : !sdscbundle.input_arg<index> -> index
		%arg_1 = sdscbundle.input_arg_extract value from %arg_1_base_addr : !sdscbundle.input_arg<index> -> index
		%arg_2 = sdscbundle.input_arg_extract value from %arg_2_base_addr : !sdscbundle.input_arg<index> -> index
		%arg_3 = sdscbundle.input_arg_extract value from %arg_3_base_addr : !sdscbundle.input_arg<index> -> index
		%arg_4 = sdscbundle.input_arg_extract value from %arg_4_base_addr : !sdscbundle.input_arg<index> -> index
		%arg_0_core_offset_1536 = arith.constant 1536 : index
		%arg_0_core_1536 = arith.addi %arg_0, %arg_0_core_offset_1536 : index
		%arg_0_core_offset_3072 = arith.constant 3072 : index
		%arg_0_core_3072 = arith.addi %arg_0, %arg_0_core_offset_3072 : index
		%arg_0_core_offset_4608 = arith.constant 4608 : index
		%arg_0_core_4608 = arith.addi %arg_0, %arg_0_core_offset_4608 : index
		%arg_0_core_offset_6144 = arith.constant 6144 : index
		%arg_0_core_6144 = arith.addi %arg_0, %arg_0_core_offset_6144 : index
		%arg_0_core_offset_7680 = arith.constant 7680 : index
		%arg_0_core_7680 = arith.addi %arg_0, %arg_0_core_offset_7680 : index
		%arg_0_core_offset_9216 = arith.constant 9216 : index
		%arg_0_core_9216 = arith.addi %arg_0, %arg_0_core_offset_9216 : index
		%arg_0_core_offset_10752 = arith.constant 10752 : index
		%arg_0_core_10752 = arith.addi %arg_0, %arg_0_core_offset_10752 : index
		%arg_0_core_offset_12288 = arith.constant 12288 : index
		%arg_0_core_12288 = arith.addi %arg_0, %arg_0_core_offset_12288 : index
		%arg_0_core_offset_13824 = arith.constant 13824 : index
		%arg_0_core_13824 = arith.addi %arg_0, %arg_0_core_offset_13824 : index
		%arg_0_core_offset_15360 = arith.constant 15360 : index
		%arg_0_core_15360 = arith.addi %arg_0, %arg_0_core_offset_15360 : index
		%arg_0_core_offset_16896 = arith.constant 16896 : index
		%arg_0_core_16896 = arith.addi %arg_0, %arg_0_core_offset_16896 : index
		%arg_0_core_offset_18432 = arith.constant 18432 : index
		%arg_0_core_18432 = arith.addi %arg_0, %arg_0_core_offset_18432 : index
		%arg_0_core_offset_19968 = arith.constant 19968 : index
		%arg_0_core_19968 = arith.addi %arg_0, %arg_0_core_offset_19968 : index
		%arg_0_core_offset_21504 = arith.constant 21504 : index
		%arg_0_core_21504 = arith.addi %arg_0, %arg_0_core_offset_21504 : index
		%arg_0_core_offset_23040 = arith.constant 23040 : index
		%arg_0_core_23040 = arith.addi %arg_0, %arg_0_core_offset_23040 : index
		%arg_0_core_offset_24576 = arith.constant 24576 : index
		%arg_0_core_24576 = arith.addi %arg_0, %arg_0_core_offset_24576 : index
		%arg_0_core_offset_26112 = arith.constant 26112 : index
		%arg_0_core_26112 = arith.addi %arg_0, %arg_0_core_offset_26112 : index
		%arg_0_core_offset_27648 = arith.constant 27648 : index
		%arg_0_core_27648 = arith.addi %arg_0, %arg_0_core_offset_27648 : index
		%arg_0_core_offset_29184 = arith.constant 29184 : index
		%arg_0_core_29184 = arith.addi %arg_0, %arg_0_core_offset_29184 : index
		%arg_0_core_offset_30720 = arith.constant 30720 : index
		%arg_0_core_30720 = arith.addi %arg_0, %arg_0_core_offset_30720 : index
		%arg_0_core_offset_32256 = arith.constant 32256 : index
		%arg_0_core_32256 = arith.addi %arg_0, %arg_0_core_offset_32256 : index
		%arg_0_core_offset_33792 = arith.constant 33792 : index
		%arg_0_core_33792 = arith.addi %arg_0, %arg_0_core_offset_33792 : index
		%arg_0_core_offset_35328 = arith.constant 35328 : index
		%arg_0_core_35328 = arith.addi %arg_0, %arg_0_core_offset_35328 : index
		%arg_0_core_offset_36864 = arith.constant 36864 : index
		%arg_0_core_36864 = arith.addi %arg_0, %arg_0_core_offset_36864 : index
		%arg_0_core_offset_38400 = arith.constant 38400 : index
		%arg_0_core_38400 = arith.addi %arg_0, %arg_0_core_offset_38400 : index
		%arg_0_core_offset_39936 = arith.constant 39936 : index
		%arg_0_core_39936 = arith.addi %arg_0, %arg_0_core_offset_39936 : index
		%arg_0_core_offset_41472 = arith.constant 41472 : index
		%arg_0_core_41472 = arith.addi %arg_0, %arg_0_core_offset_41472 : index
		%arg_0_core_offset_43008 = arith.constant 43008 : index
		%arg_0_core_43008 = arith.addi %arg_0, %arg_0_core_offset_43008 : index
		%arg_0_core_offset_44544 = arith.constant 44544 : index
		%arg_0_core_44544 = arith.addi %arg_0, %arg_0_core_offset_44544 : index
		%arg_4_core_offset_1536 = arith.constant 1536 : index
		%arg_4_core_1536 = arith.addi %arg_4, %arg_4_core_offset_1536 : index
		%arg_4_core_offset_3072 = arith.constant 3072 : index
		%arg_4_core_3072 = arith.addi %arg_4, %arg_4_core_offset_3072 : index
		%arg_4_core_offset_4608 = arith.constant 4608 : index
		%arg_4_core_4608 = arith.addi %arg_4, %arg_4_core_offset_4608 : index
		%arg_4_core_offset_6144 = arith.constant 6144 : index
		%arg_4_core_6144 = arith.addi %arg_4, %arg_4_core_offset_6144 : index
		%arg_4_core_offset_7680 = arith.constant 7680 : index
		%arg_4_core_7680 = arith.addi %arg_4, %arg_4_core_offset_7680 : index
		%arg_4_core_offset_9216 = arith.constant 9216 : index
		%arg_4_core_9216 = arith.addi %arg_4, %arg_4_core_offset_9216 : index
		%arg_4_core_offset_10752 = arith.constant 10752 : index
		%arg_4_core_10752 = arith.addi %arg_4, %arg_4_core_offset_10752 : index
		%arg_4_core_offset_12288 = arith.constant 12288 : index
		%arg_4_core_12288 = arith.addi %arg_4, %arg_4_core_offset_12288 : index
		%arg_4_core_offset_13824 = arith.constant 13824 : index
		%arg_4_core_13824 = arith.addi %arg_4, %arg_4_core_offset_13824 : index
		%arg_4_core_offset_15360 = arith.constant 15360 : index
		%arg_4_core_15360 = arith.addi %arg_4, %arg_4_core_offset_15360 : index
		%arg_4_core_offset_16896 = arith.constant 16896 : index
		%arg_4_core_16896 = arith.addi %arg_4, %arg_4_core_offset_16896 : index
		%arg_4_core_offset_18432 = arith.constant 18432 : index
		%arg_4_core_18432 = arith.addi %arg_4, %arg_4_core_offset_18432 : index
		%arg_4_core_offset_19968 = arith.constant 19968 : index
		%arg_4_core_19968 = arith.addi %arg_4, %arg_4_core_offset_19968 : index
		%arg_4_core_offset_21504 = arith.constant 21504 : index
		%arg_4_core_21504 = arith.addi %arg_4, %arg_4_core_offset_21504 : index
		%arg_4_core_offset_23040 = arith.constant 23040 : index
		%arg_4_core_23040 = arith.addi %arg_4, %arg_4_core_offset_23040 : index
		%arg_4_core_offset_24576 = arith.constant 24576 : index
		%arg_4_core_24576 = arith.addi %arg_4, %arg_4_core_offset_24576 : index
		%arg_4_core_offset_26112 = arith.constant 26112 : index
		%arg_4_core_26112 = arith.addi %arg_4, %arg_4_core_offset_26112 : index
		%arg_4_core_offset_27648 = arith.constant 27648 : index
		%arg_4_core_27648 = arith.addi %arg_4, %arg_4_core_offset_27648 : index
		%arg_4_core_offset_29184 = arith.constant 29184 : index
		%arg_4_core_29184 = arith.addi %arg_4, %arg_4_core_offset_29184 : index
		%arg_4_core_offset_30720 = arith.constant 30720 : index
		%arg_4_core_30720 = arith.addi %arg_4, %arg_4_core_offset_30720 : index
		%arg_4_core_offset_32256 = arith.constant 32256 : index
		%arg_4_core_32256 = arith.addi %arg_4, %arg_4_core_offset_32256 : index
		%arg_4_core_offset_33792 = arith.constant 33792 : index
		%arg_4_core_33792 = arith.addi %arg_4, %arg_4_core_offset_33792 : index
		%arg_4_core_offset_35328 = arith.constant 35328 : index
		%arg_4_core_35328 = arith.addi %arg_4, %arg_4_core_offset_35328 : index
		%arg_4_core_offset_36864 = arith.constant 36864 : index
		%arg_4_core_36864 = arith.addi %arg_4, %arg_4_core_offset_36864 : index
		%arg_4_core_offset_38400 = arith.constant 38400 : index
		%arg_4_core_38400 = arith.addi %arg_4, %arg_4_core_offset_38400 : index
		%arg_4_core_offset_39936 = arith.constant 39936 : index
		%arg_4_core_39936 = arith.addi %arg_4, %arg_4_core_offset_39936 : index
		%arg_4_core_offset_41472 = arith.constant 41472 : index
		%arg_4_core_41472 = arith.addi %arg_4, %arg_4_core_offset_41472 : index
		%arg_4_core_offset_43008 = arith.constant 43008 : index
		%arg_4_core_43008 = arith.addi %arg_4, %arg_4_core_offset_43008 : index
		%arg_4_core_offset_44544 = arith.constant 44544 : index
		%arg_4_core_44544 = arith.addi %arg_4, %arg_4_core_offset_44544 : index
		sdscbundle.sdsc_execute (%arg_0, %arg_0_core_1536, %arg_0_core_3072, %arg_0_core_4608, %arg_0_core_6144, %arg_0_core_7680, %arg_0_core_9216, %arg_0_core_10752, %arg_0_core_12288, %arg_0_core_13824, %arg_0_core_15360, %arg_0_core_16896, %arg_0_core_18432, %arg_0_core_19968, %arg_0_core_21504, %arg_0_core_23040, %arg_0_core_24576, %arg_0_core_26112, %arg_0_core_27648, %arg_0_core_29184, %arg_0_core_30720, %arg_0_core_32256, %arg_0_core_33792, %arg_0_core_35328, %arg_0_core_36864, %arg_0_core_38400, %arg_0_core_39936, %arg_0_core_41472, %arg_0_core_43008, %arg_0_core_44544, %arg_1) {sdsc_filename="sdsc_0.json", "symbol_ids"=[-1, -2, -3, -4, -5, -6, -7, -8, -9, -10, -11, -12, -13, -14, -15, -16, -17, -18, -19, -20, -21, -22, -23, -24, -25, -26, -27, -28, -29, -30, -31]}
		sdscbundle.sdsc_execute () {sdsc_filename="sdsc_1.json", "symbol_ids"=[]}
		sdscbundle.sdsc_execute (%arg_2) {sdsc_filename="sdsc_2.json", "symbol_ids"=[-32]}
		sdscbundle.sdsc_execute (%arg_3) {sdsc_filename="sdsc_3.json", "symbol_ids"=[-33]}
		sdscbundle.sdsc_execute () {sdsc_filename="sdsc_4.json", "symbol_ids"=[]}
		sdscbundle.sdsc_execute () {sdsc_filename="sdsc_5.json", "symbol_ids"=[]}
		sdscbundle.sdsc_execute () {sdsc_filename="sdsc_6.json", "symbol_ids"=[]}
		sdscbundle.sdsc_execute () {sdsc_filename="sdsc_7.json", "symbol_ids"=[]}
		sdscbundle.sdsc_execute (%arg_4, %arg_4_core_1536, %arg_4_core_3072, %arg_4_core_4608, %arg_4_core_6144, %arg_4_core_7680, %arg_4_core_9216, %arg_4_core_10752, %arg_4_core_12288, %arg_4_core_13824, %arg_4_core_15360, %arg_4_core_16896, %arg_4_core_18432, %arg_4_core_19968, %arg_4_core_21504, %arg_4_core_23040, %arg_4_core_24576, %arg_4_core_26112, %arg_4_core_27648, %arg_4_core_29184, %arg_4_core_30720, %arg_4_core_32256, %arg_4_core_33792, %arg_4_core_35328, %arg_4_core_36864, %arg_4_core_38400, %arg_4_core_39936, %arg_4_core_41472, %arg_4_core_43008, %arg_4_core_44544) {sdsc_filename="sdsc_8.json", "symbol_ids"=[-34, -35, -36, -37, -38, -39, -40, -41, -42, -43, -44, -45, -46, -47, -48, -49, -50, -51, -52, -53, -54, -55, -56, -57, -58, -59, -60, -61, -62, -63]}
		return
	}
}
