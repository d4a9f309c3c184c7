module {
	func.func @sdsc_bundle(%pool_base_addr: !sdscbundle.input_arg<index>, %arg_0_base_addr: !sdscbundle.input_arg<index>, %arg_1_base_addr: !sdscbundle.input_arg<index>, %arg_2_base_addr: !sdscbundle.input_arg<index>, %arg_3_base_addr: !sdscbundle.input_arg<index>, %arg_4_base_addr: !sdscbundle.input_arg<index>) {
		%pool = sdscbundle.input_arg_extract value from %pool_base_addr : !sdscbundle.input_arg<index> -> index
		%arg_0 = sdscbundle.input_arg_extract value from %arg_0_base_addr : !sdscbundle.input_arg<index> -> index
		%arg_1 = sdscbundle.input_arg_extract value from %arg_1_base_addr : !sdscbundle.input_arg<index> -> index
		%arg_2 = sdscbundle.input_arg_extract value from %arg_2_base_addr : !sdscbundle.input_arg<index> -> index
		%arg_3 = sdscbundle.input_arg_extract value from %arg_3_base_addr : !sdscbundle.input_arg<index> -> index
		%arg_4 = sdscbundle.input_arg_extract value from %arg_4_base_addr : !sdscbundle.input_arg<index> -> index
		%arg_1_core_offset_131072 = arith.constant 131072 : index
		%arg_1_core_131072 = arith.addi %arg_1, %arg_1_core_offset_131072 : index
		%pool_offset_0 = arith.constant 0 : index
		%pool_addr_0 = arith.addi %pool, %pool_offset_0 : index
		%pool_offset_256 = arith.constant 256 : index
		%pool_addr_256 = arith.addi %pool, %pool_offset_256 : index
		%pool_offset_8192 = arith.constant 8192 : index
		%pool_addr_8192 = arith.addi %pool, %pool_offset_8192 : index
		%pool_offset_16384 = arith.constant 16384 : index
		%pool_addr_16384 = arith.addi %pool, %pool_offset_16384 : index
		%pool_offset_24576 = arith.constant 24576 : index
		%pool_addr_24576 = arith.addi %pool, %pool_offset_24576 : index
		%arg_3_core_offset_8192 = arith.constant 8192 : index
		%arg_3_core_8192 = arith.addi %arg_3, %arg_3_core_offset_8192 : index
		%arg_4_core_offset_8192 = arith.constant 8192 : index
		%arg_4_core_8192 = arith.addi %arg_4, %arg_4_core_offset_8192 : index
		sdscbundle.sdsc_execute (%arg_0, %arg_1, %arg_1_core_131072, %pool_addr_0, %pool_addr_256) {sdsc_filename="sdsc_0.json", "symbol_ids"=[-1, -2, -3, -4, -5]}
		sdscbundle.sdsc_execute (%pool_addr_0, %pool_addr_8192, %arg_2, %pool_addr_16384, %pool_addr_24576) {sdsc_filename="sdsc_1.json", "symbol_ids"=[-6, -7, -8, -9, -10]}
		sdscbundle.sdsc_execute (%arg_3, %arg_3_core_8192, %pool_addr_16384, %pool_addr_24576, %arg_4, %arg_4_core_8192) {sdsc_filename="sdsc_2.json", "symbol_ids"=[-11, -12, -13, -14, -15, -16]}
		return
	}
}
