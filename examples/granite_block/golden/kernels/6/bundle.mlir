module {
	func.func @sdsc_bundle(%pool_base_addr: !sdscbundle.input_arg<index>, %arg_0_base_addr: !sdscbundle.input_arg<index>, %arg_1_base_addr: !sdscbundle.input_arg<index>, %arg_2_base_addr: !sdscbundle.input_arg<index>, %arg_3_base_addr: !sdscbundle.input_arg<index>, %arg_4_base_addr: !sdscbundle.input_arg<index>) {
		%pool = sdscbundle.input_arg_extract value from %pool_base_addr : !sdscbundle.input_arg<index> -> index
		%arg_0 = sdscbundle.input_arg_extract value from %arg_0_base_addr : !sdscbundle.input_arg<index> -> index
		%arg_1 = sdscbundle.input_arg_extract value from %arg_1_base_addr : !sdscbundle.input_arg<index> -> index
		%arg_2 = sdscbundle.input_arg_extract value from %arg_2_base_addr : !sdscbundle.input_arg<index> -> index
		%arg_3 = sdscbundle.input_arg_extract value from %arg_3_base_addr : !sdscbundle.input_arg<index> -> index
		%arg_4 = sdscbundle.input_arg_extract value from %arg_4_base_addr : !sdscbundle.input_arg<index> -> index
		%arg_0_core_offset_2048 = arith.constant 2048 : index
		%arg_0_core_2048 = arith.addi %arg_0, %arg_0_core_offset_2048 : index
		%arg_1_core_offset_2048 = arith.constant 2048 : index
		%arg_1_core_2048 = arith.addi %arg_1, %arg_1_core_offset_2048 : index
		%arg_2_core_offset_4096 = arith.constant 4096 : index
		%arg_2_core_4096 = arith.addi %arg_2, %arg_2_core_offset_4096 : index
		%pool_offset_0 = arith.constant 0 : index
		%pool_addr_0 = arith.addi %pool, %pool_offset_0 : index
		%pool_offset_2048 = arith.constant 2048 : index
		%pool_addr_2048 = arith.addi %pool, %pool_offset_2048 : index
		%pool_offset_4096 = arith.constant 4096 : index
		%pool_addr_4096 = arith.addi %pool, %pool_offset_4096 : index
		%pool_offset_20480 = arith.constant 20480 : index
		%pool_addr_20480 = arith.addi %pool, %pool_offset_20480 : index
		%arg_4_core_offset_2048 = arith.constant 2048 : index
		%arg_4_core_2048 = arith.addi %arg_4, %arg_4_core_offset_2048 : index
		sdscbundle.sdsc_execute (%arg_0, %arg_0_core_2048, %arg_1, %arg_1_core_2048) {sdsc_filename="sdsc_0.json", "symbol_ids"=[-1, -2, -3, -4]}
		sdscbundle.sdsc_execute () {sdsc_filename="sdsc_1.json", "symbol_ids"=[]}
		sdscbundle.sdsc_execute () {sdsc_filename="sdsc_2.json", "symbol_ids"=[]}
		sdscbundle.sdsc_execute () {sdsc_filename="sdsc_3.json", "symbol_ids"=[]}
		sdscbundle.sdsc_execute () {sdsc_filename="sdsc_4.json", "symbol_ids"=[]}
		sdscbundle.sdsc_execute () {sdsc_filename="sdsc_5.json", "symbol_ids"=[]}
		sdscbundle.sdsc_execute (%arg_2, %arg_2_core_4096, %pool_addr_0, %pool_addr_2048) {sdsc_filename="sdsc_6.json", "symbol_ids"=[-5, -6, -7, -8]}
		sdscbundle.sdsc_execute (%arg_3, %pool_addr_4096, %pool_addr_20480) {sdsc_filename="sdsc_7.json", "symbol_ids"=[-9, -10, -11]}
		sdscbundle.sdsc_execute (%pool_addr_0, %arg_4, %arg_4_core_2048) {sdsc_filename="sdsc_8.json", "symbol_ids"=[-12, -13, -14]}
		return
	}
}
