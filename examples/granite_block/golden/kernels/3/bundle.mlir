module {
	func.func @sdsc_bundle(%pool_base_addr: !sdscbundle.input_arg<index>, %arg_0_base_addr: !sdscbundle.input_arg<index>, %arg_1_base_addr: !sdscbundle.input_arg<index>, %arg_2_base_addr: !sdscbundle.input_arg<index>, %arg_3_base_addr: !sdscbundle.input_arg<index>) {
		%pool = sdscbundle.input_arg_extract value from %pool_base_addr : !sdscbundle.input_arg<index> -> index
		%arg_0 = sdscbundle.input_arg_extract value from %arg_0_base_addr : !sdscbundle.input_arg<index> -> index
		%arg_1 = sdscbundle.input_arg_extract value from %arg_1_base_addr : !sdscbundle.input_arg<index> -> index
		%arg_2 = sdscbundle.input_arg_extract value from %arg_2_base_addr : !sdscbundle.input_arg<index> -> index
		%arg_3 = sdscbundle.input_arg_extract value from %arg_3_base_addr : !sdscbundle.input_arg<index> -> index
		%arg_0_core_offset_256 = arith.constant 256 : index
		%arg_0_core_256 = arith.addi %arg_0, %arg_0_core_offset_256 : index
		%pool_offset_0 = arith.constant 0 : index
		%pool_addr_0 = arith.addi %pool, %pool_offset_0 : index
		%pool_offset_16384 = arith.constant 16384 : index
		%pool_addr_16384 = arith.addi %pool, %pool_offset_16384 : index
		%pool_offset_4096 = arith.constant 4096 : index
		%pool_addr_4096 = arith.addi %pool, %pool_offset_4096 : index
		%pool_offset_20480 = arith.constant 20480 : index
		%pool_addr_20480 = arith.addi %pool, %pool_offset_20480 : index
		%pool_offset_32768 = arith.constant 32768 : index
		%pool_addr_32768 = arith.addi %pool, %pool_offset_32768 : index
		%pool_offset_49152 = arith.constant 49152 : index
		%pool_addr_49152 = arith.addi %pool, %pool_offset_49152 : index
		%pool_offset_65536 = arith.constant 65536 : index
		%pool_addr_65536 = arith.addi %pool, %pool_offset_65536 : index
		%pool_offset_65792 = arith.constant 65792 : index
		%pool_addr_65792 = arith.addi %pool, %pool_offset_65792 : index
		%pool_offset_36864 = arith.constant 36864 : index
		%pool_addr_36864 = arith.addi %pool, %pool_offset_36864 : index
		%pool_offset_53248 = arith.constant 53248 : index
		%pool_addr_53248 = arith.addi %pool, %pool_offset_53248 : index
		%arg_1_core_offset_4096 = arith.constant 4096 : index
		%arg_1_core_4096 = arith.addi %arg_1, %arg_1_core_offset_4096 : index
		%arg_2_core_offset_4096 = arith.constant 4096 : index
		%arg_2_core_4096 = arith.addi %arg_2, %arg_2_core_offset_4096 : index
		%arg_3_core_offset_4096 = arith.constant 4096 : index
		%arg_3_core_4096 = arith.addi %arg_3, %arg_3_core_offset_4096 : index
		sdscbundle.sdsc_execute (%arg_0, %arg_0_core_256, %pool_addr_0, %pool_addr_16384) {sdsc_filename="sdsc_0.json", "symbol_ids"=[-1, -2, -3, -4]}
		sdscbundle.sdsc_execute (%pool_addr_4096, %pool_addr_20480) {sdsc_filename="sdsc_1.json", "symbol_ids"=[-5, -6]}
		sdscbundle.sdsc_execute (%pool_addr_32768, %pool_addr_49152) {sdsc_filename="sdsc_2.json", "symbol_ids"=[-7, -8]}
		sdscbundle.sdsc_execute (%arg_0, %arg_0_core_256, %pool_addr_65536, %pool_addr_65792) {sdsc_filename="sdsc_3.json", "symbol_ids"=[-9, -10, -11, -12]}
		sdscbundle.sdsc_execute (%pool_addr_65536, %pool_addr_65792, %pool_addr_36864, %pool_addr_53248) {sdsc_filename="sdsc_4.json", "symbol_ids"=[-13, -14, -15, -16]}
		sdscbundle.sdsc_execute (%pool_addr_0, %pool_addr_4096, %arg_1, %arg_1_core_4096) {sdsc_filename="sdsc_5.json", "symbol_ids"=[-17, -18, -19, -20]}
		sdscbundle.sdsc_execute (%pool_addr_32768, %pool_addr_36864, %arg_2, %arg_2_core_4096) {sdsc_filename="sdsc_6.json", "symbol_ids"=[-21, -22, -23, -24]}
		sdscbundle.sdsc_execute (%arg_3, %arg_3_core_4096) {sdsc_filename="sdsc_7.json", "symbol_ids"=[-25, -26]}
		return
	}
}
