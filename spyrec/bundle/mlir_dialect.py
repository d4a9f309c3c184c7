"""The ``sdscbundle`` dialect as MLIR can check it: its types and operations in IRDL, in the generic form.

No public source defines the dialect; this is what torch-spyre writes and the public bundle specification says of it.
"""

from __future__ import annotations

SDSCBUNDLE = """"builtin.module"() ({
  "irdl.dialect"() <{sym_name = "sdscbundle"}> ({
    "irdl.type"() <{sym_name = "input_arg"}> ({
      %element = "irdl.is"() <{expected = index}> : () -> !irdl.attribute
      "irdl.parameters"(%element) <{names = ["element"]}> : (!irdl.attribute) -> ()
    }) : () -> ()
    "irdl.type"() <{sym_name = "limited_input_arg"}> ({
      %element = "irdl.is"() <{expected = index}> : () -> !irdl.attribute
      %limits = "irdl.base"() <{base_name = "#builtin.dictionary"}> : () -> !irdl.attribute
      "irdl.parameters"(%element, %limits) <{names = ["element", "limits"]}> :
        (!irdl.attribute, !irdl.attribute) -> ()
    }) : () -> ()
    "irdl.operation"() <{sym_name = "input_arg_extract"}> ({
      %plain = "irdl.base"() <{base_ref = @sdscbundle::@input_arg}> : () -> !irdl.attribute
      %limited = "irdl.base"() <{base_ref = @sdscbundle::@limited_input_arg}> : () -> !irdl.attribute
      %argument = "irdl.any_of"(%plain, %limited) : (!irdl.attribute, !irdl.attribute) -> !irdl.attribute
      %index = "irdl.is"() <{expected = index}> : () -> !irdl.attribute
      %part = "irdl.is"() <{expected = "value"}> : () -> !irdl.attribute
      "irdl.operands"(%argument) <{names = ["argument"], variadicity = #irdl<variadicity_array[single]>}> :
        (!irdl.attribute) -> ()
      "irdl.results"(%index) <{names = ["value"], variadicity = #irdl<variadicity_array[single]>}> :
        (!irdl.attribute) -> ()
      "irdl.attributes"(%part) <{attributeValueNames = ["part"]}> : (!irdl.attribute) -> ()
    }) : () -> ()
    "irdl.operation"() <{sym_name = "device_mem_allocate"}> ({
      %index = "irdl.is"() <{expected = index}> : () -> !irdl.attribute
      %size = "irdl.base"() <{base_name = "#builtin.integer"}> : () -> !irdl.attribute
      "irdl.results"(%index) <{names = ["address"], variadicity = #irdl<variadicity_array[single]>}> :
        (!irdl.attribute) -> ()
      "irdl.attributes"(%size) <{attributeValueNames = ["size_bytes"]}> : (!irdl.attribute) -> ()
    }) : () -> ()
    "irdl.operation"() <{sym_name = "sdsc_execute"}> ({
      %index = "irdl.is"() <{expected = index}> : () -> !irdl.attribute
      %file = "irdl.base"() <{base_name = "#builtin.string"}> : () -> !irdl.attribute
      %list = "irdl.base"() <{base_name = "#builtin.dense_array"}> : () -> !irdl.attribute
      %absent = "irdl.is"() <{expected = unit}> : () -> !irdl.attribute
      %ids = "irdl.any_of"(%list, %absent) : (!irdl.attribute, !irdl.attribute) -> !irdl.attribute
      "irdl.operands"(%index) <{names = ["symbols"], variadicity = #irdl<variadicity_array[variadic]>}> :
        (!irdl.attribute) -> ()
      "irdl.attributes"(%file, %ids) <{attributeValueNames = ["sdsc_filename", "symbol_ids"]}> :
        (!irdl.attribute, !irdl.attribute) -> ()
    }) : () -> ()
  }) : () -> ()
}) : () -> ()
"""
"""IRDL has no optional attributes and no types with more or fewer parameters: the generic form writes a missing
``symbol_ids`` as ``unit``, and a parameter with limits as a type of its own that takes them in a dictionary."""
