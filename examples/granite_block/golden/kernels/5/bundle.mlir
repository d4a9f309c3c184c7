module {
	func.func @sdsc_bundle(%pool_base_addr: !sdscbundle.input_arg<index>, %arg_0_base_addr: !sdscbundle.input_arg<index>, %arg_1_base_addr: !sdscbundle.input_arg<index>, %arg_2_base_addr: !sdscbundle.input_arg<index>, %arg_3_base_addr: !sdscbundle.input_arg<index>) {
		%pool = sdscbundle.input_arg_extract value from %pool_base_addr : !sdscbundle.input_arg<index> -> index
		%arg_0 = sdscbundle.input_arg_extract value from %arg_0_base_addr : !sdscbundle.input_arg<index> -> index
		%arg_1 = sdscbundle.input_arg_extract value from %arg_1_base_addr : !sdscbundle.input_arg<index> -> index
		%arg_2 = sdscbundle.input_arg_extract value from %arg_2_base_addr : !sdscbundle.input_arg<index> -> index
		%arg_3 = sdscbundle.input_arg_extract value from %arg_3_base_addr : !sdscbundle.input_arg<index> -> index
		%arg_0_core_offset_16384 = arith.constant 16384 : index
		%arg_0_core_16384 = arith.addi %arg_0, %arg_0_core_offset_16384 : index
		%pool_offset_0 = arith.constant 0 : index
		%pool_addr_0 = arith.addi %pool, %pool_offset_0 : index
		%pool_offset_8192 = arith.constant 8192 : index
		%pool_addr_8192 = arith.addi %pool, %pool_offset_8192 : index
		%pool_offset_2048 = arith.constant 2048 : index
		%pool_addr_2048 = arith.addi %pool, %pool_offset_2048 : index
		%arg_2_core_offset_4096 = arith.constant 4096 : index
		%arg_2_core_4096 = arith.addi %arg_2, %arg_2_core_offset_4096 : index
		%pool_offset_4096 = arith.constant 4096 : index
		%pool_addr_4096 = arith.addi %pool, %pool_offset_4096 : index
		%arg_3_core_offset_2048 = arith.constant 2048 : index
		%arg_3_core_2048 = arith.addi %arg_3, %arg_3_core_offset_2048 : index
		sdscbundle.sdsc_execute (%arg_0, %arg_0_core_16384, %pool_addr_0, %pool_addr_8192) {sdsc_filename="sdsc_0.json", "symbol_ids"=[-1, -2, -3, -4]}
		sdscbundle.sdsc_execute (%pool_addr_0, %pool_addr_2048, %arg_1) {sdsc_filename="sdsc_1.json", "symbol_ids"=[-5, -6, -7]}
		sdscbundle.sdsc_execute (%arg_2, %arg_2_core_4096, %arg_1, %pool_addr_0, %pool_addr_4096) {sdsc_filename="sdsc_2.json", "symbol_ids"=[-8, -9, -10, -11, -12]}
		sdscbundle.sdsc_execute (%pool_addr_0, %arg_3, %arg_3_core_2048) {sdsc_filename="sdsc_3.json", "symbol_ids"=[-13, -14, -15]}
		return
	}
}
