"""ONNX models as graphs: the file, the values that are known beforehand, and each operator as ops of a graph."""
