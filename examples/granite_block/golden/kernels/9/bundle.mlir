module {
	func.func @sdsc_bundle(%pool_base_addr: !sdscbundle.input_arg<index>, %arg_0_base_addr: !sdscbundle.input_arg<index>, %arg_1_base_addr: !sdscbundle.input_arg<index>, %arg_2_base_addr: !sdscbundle.input_arg<index>, %arg_3_base_addr: !sdscbundle.input_arg<index>, %arg_4_base_addr: !sdscbundle.input_arg<index>) {
		%pool = sdscbundle.input_arg_extract value from %pool_base_addr : !sdscbundle.input_arg<index> -> index
		%arg_0 = sdscbundle.input_arg_extract value from %arg_0_base_addr : !sdscbundle.input_arg<index> -> index
		%arg_1 = sdscbundle.input_arg_extract value from %arg_1_base_addr : !sdscbundle.input_arg<index> -> index
		%arg_2 = sdscbundle.input_arg_extract value from %arg_2_base_addr : !sdscbundle.input_arg<index> -> index
		%arg_3 = sdscbundle.input_arg_extract value from %arg_3_base_addr : !sdscbundle.input_arg<index> -> index
		%arg_4 = sdscbundle.input_arg_extract value from %arg_4_base_addr : !sdscbundle.input_arg<index> -> index
		%arg_0_core_offset_256 = arith.constant 256 : index
		%arg_0_core_256 = arith.addi %arg_0, %arg_0_core_offset_256 : index
		%arg_1_core_offset_256 = arith.constant 256 : index
		%arg_1_core_256 = arith.addi %arg_1, %arg_1_core_offset_256 : index
		%pool_offset_65536 = arith.constant 65536 : index
		%pool_addr_65536 = arith.addi %pool, %pool_offset_65536 : index
		%pool_offset_65792 = arith.constant 65792 : index
		%pool_addr_65792 = arith.addi %pool, %pool_offset_65792 : index
		%arg_2_core_offset_131072 = arith.constant 131072 : index
		%arg_2_core_131072 = arith.addi %arg_2, %arg_2_core_offset_131072 : index
		%pool_offset_0 = arith.constant 0 : index
		%pool_addr_0 = arith.addi %pool, %pool_offset_0 : index
		%pool_offset_512 = arith.constant 512 : index
		%pool_addr_512 = arith.addi %pool, %pool_offset_512 : index
		%arg_3_core_offset_131072 = arith.constant 131072 : index
		%arg_3_core_131072 = arith.addi %arg_3, %arg_3_core_offset_131072 : index
		%pool_offset_32768 = arith.constant 32768 : index
		%pool_addr_32768 = arith.addi %pool, %pool_offset_32768 : index
		%pool_offset_33280 = arith.constant 33280 : index
		%pool_addr_33280 = arith.addi %pool, %pool_offset_33280 : index
		%pool_offset_16384 = arith.constant 16384 : index
		%pool_addr_16384 = arith.addi %pool, %pool_offset_16384 : index
		%pool_offset_81920 = arith.constant 81920 : index
		%pool_addr_81920 = arith.addi %pool, %pool_offset_81920 : index
		%pool_offset_49152 = arith.constant 49152 : index
		%pool_addr_49152 = arith.addi %pool, %pool_offset_49152 : index
		%arg_4_core_offset_16384 = arith.constant 16384 : index
		%arg_4_core_16384 = arith.addi %arg_4, %arg_4_core_offset_16384 : index
		sdscbundle.sdsc_execute (%arg_0, %arg_0_core_256, %arg_1, %arg_1_core_256, %pool_addr_65536, %pool_addr_65792) {sdsc_filename="sdsc_0.json", "symbol_ids"=[-1, -2, -3, -4, -5, -6]}
		sdscbundle.sdsc_execute (%pool_addr_65536, %arg_2, %arg_2_core_131072, %pool_addr_0, %pool_addr_512) {sdsc_filename="sdsc_1.json", "symbol_ids"=[-7, -8, -9, -10, -11]}
		sdscbundle.sdsc_execute (%pool_addr_65536, %arg_3, %arg_3_core_131072, %pool_addr_32768, %pool_addr_33280) {sdsc_filename="sdsc_2.json", "symbol_ids"=[-12, -13, -14, -15, -16]}
		sdscbundle.sdsc_execute (%pool_addr_0, %pool_addr_16384, %pool_addr_65536, %pool_addr_81920) {sdsc_filename="sdsc_3.json", "symbol_ids"=[-17, -18, -19, -20]}
		sdscbundle.sdsc_execute (%pool_addr_65536, %pool_addr_81920, %pool_addr_32768, %pool_addr_49152, %arg_4, %arg_4_core_16384) {sdsc_filename="sdsc_4.json", "symbol_ids"=[-21, -22, -23, -24, -25, -26]}
		return
	}
}
