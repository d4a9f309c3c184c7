"""Text to Program: a parser of the subset of MLIR that ``bundle.mlir`` is written in (custom form).

Comments and blanks are free; every error has a line and a column.  Names are not looked up here: that every value is
defined before it is used is a rule of ``validate``.
"""

from __future__ import annotations

import re
from typing import NoReturn

from spyrec.bundle.mlir_printer import FUNCTION_NAME
from spyrec.bundle.program import (
    Add,
    AffineApply,
    AffineMap,
    ArgumentExtract,
    Constant,
    DeviceMemoryAllocate,
    For,
    InputArgument,
    Program,
    SdscExecute,
    Statement,
)
from spyrec.diagnostics import Location, refuse
from spyrec.diagnostics.json_reading import MAX_TEXT_BYTES
from spyrec.diagnostics.source_text import SourceText

SYNTAX = "SPY0630"
"""Code of text that is no program in the subset of MLIR that is read."""

UNKNOWN_OPERATION = "SPY0631"
"""Code of an operation or attribute outside the subset."""

MAX_LOOP_DEPTH = 32
"""Deepest nesting of loops that is read."""

MAX_MAP_DIMS = MAX_LOOP_DEPTH

_TOKEN = re.compile(
    r"""//[^\n]*                          # a comment
    | [%\#@!][A-Za-z0-9_$.\-]+            # value, alias, symbol, type
    | "(?:[^"\\\n]|\\.)*"                 # string
    | ->
    | -?[0-9][0-9A-Za-z_]*                # integer (what is no decimal number is refused where it stands)
    | [A-Za-z_][A-Za-z0-9_$.]*            # word
    | \S                                  # punctuation, or what belongs nowhere
    """,
    re.VERBOSE,
)
_INTEGER = re.compile(r"-?[0-9]{1,19}")
_ESCAPE = re.compile(r'\\([0-9A-Fa-f]{2}|["\\nt])')
_PLAIN_ESCAPES = {'"': '"', "\\": "\\", "n": "\n", "t": "\t"}
_LARGEST = (1 << 63) - 1


def parse_program(text: str | bytes, file: str | None = None) -> Program:
    """Read ``bundle.mlir``.

    Errors: SPY0630 syntax or a number out of range, SPY0631 an operation outside the subset; with line and column.
    """
    return _Parser(_decode(text, file), file).program()


def _decode(text: str | bytes, file: str | None) -> str:
    if len(text) > MAX_TEXT_BYTES:
        raise refuse(SYNTAX, f"the text has {len(text)} bytes, more than {MAX_TEXT_BYTES}", Location(file))
    if isinstance(text, str):
        return text
    try:
        return text.decode("utf-8")
    except UnicodeDecodeError as error:
        fact = f"byte 0x{text[error.start]:02x} at offset {error.start} is not UTF-8"
        raise refuse(SYNTAX, fact, Location(file)) from None


class _Parser:
    """Recursive descent over the tokens; ``self.next`` is the index of the token that comes."""

    def __init__(self, text: str, file: str | None) -> None:
        self.text = text
        self.file = file
        found: list[str] = _TOKEN.findall(text)
        self.tokens = [token for token in found if not token.startswith("//")] if "//" in text else found
        self.tokens.append("")
        self.next = 0

    # errors

    def refuse(self, message: str, index: int | None = None, code: str = SYNTAX) -> NoReturn:
        source = SourceText(self.text, self.file)
        line, column = self._position(self.next if index is None else index)
        hint = "the forms that are read are those torch-spyre writes, one function @sdsc_bundle in one module"
        raise refuse(code, message, Location(self.file, None, line, column, source), hint=hint)

    def _position(self, index: int) -> tuple[int, int]:
        """Return line and column of a token; offsets are found again here, so that good files need not keep them."""
        source = SourceText(self.text)
        matches = (match for match in _TOKEN.finditer(self.text) if not match[0].startswith("//"))
        for number, match in enumerate(matches):
            if number == index:
                return source.line_and_column(match.start())
        return source.line_and_column(len(self.text))

    def unexpected(self, wanted: str) -> NoReturn:
        token = self.tokens[self.next]
        self.refuse(f"expected {wanted}, found {f'{token[:40]!r}' if token else 'the end of the file'}")

    # tokens

    def take(self, token: str) -> None:
        if self.tokens[self.next] != token:
            self.unexpected(f"{token!r}")
        self.next += 1

    def taken(self, token: str) -> bool:
        if self.tokens[self.next] == token:
            self.next += 1
            return True
        return False

    def name(self, sigil: str, what: str) -> str:
        token = self.tokens[self.next]
        if token[:1] != sigil or len(token) < 2:
            self.unexpected(f"{what} ({sigil}name)")
        self.next += 1
        return token[1:]

    def value(self) -> str:
        token = self.tokens[self.next]
        if token[:1] != "%" or len(token) < 2:
            self.unexpected("a value (%name)")
        self.next += 1
        return token[1:]

    def integer(self) -> int:
        token = self.tokens[self.next]
        if not _INTEGER.fullmatch(token):
            self.unexpected("an integer")
        number = int(token)
        if abs(number) > _LARGEST:
            self.refuse(f"integer {token} does not fit 64 bits")
        self.next += 1
        return number

    def values_until(self, closing: str) -> tuple[str, ...]:
        """Return ``%a, %b`` up to and with the closing token."""
        values: list[str] = []
        while not self.taken(closing):
            if values:
                self.take(",")
            values.append(self.value())
        return tuple(values)

    # grammar

    def program(self) -> Program:
        maps: list[AffineMap] = []
        while self.tokens[self.next].startswith("#"):
            maps.append(self.affine_map())
        self.take("module")
        if self.tokens[self.next].startswith("@"):
            self.next += 1
        self.take("{")
        self.take("func.func")
        self.take(f"@{FUNCTION_NAME}")
        parameters = self.parameters()
        self.take("{")
        body = self.body(("return", "func.return"), 0)
        self.next += 1
        for _ in ("function", "module"):
            self.take("}")
        if self.tokens[self.next]:
            self.unexpected("the end of the file")
        return Program(tuple(maps), parameters, body)

    def affine_map(self) -> AffineMap:
        name = self.name("#", "an alias")
        for token in ("=", "affine_map", "<", "("):
            self.take(token)
        dims: list[str] = []
        while not self.taken(")"):
            if dims:
                self.take(",")
            dims.append(self.word("a dim"))
        if len(dims) > MAX_MAP_DIMS:
            self.refuse(f"{len(dims)} dims in a map, more than {MAX_MAP_DIMS}")
        self.take("[")
        symbol = self.word("a symbol")
        for token in ("]", "->", "("):
            self.take(token)
        coefficients = self.linear_form(dims, symbol)
        for token in (")", ">"):
            self.take(token)
        return AffineMap(name, coefficients)

    def word(self, what: str) -> str:
        token = self.tokens[self.next]
        if not (token[:1].isalpha() or token[:1] == "_"):
            self.unexpected(what)
        self.next += 1
        return token

    def linear_form(self, dims: list[str], symbol: str) -> tuple[int, ...]:
        """Return the coefficients of ``s0 + c0*d0 + d1*c1 + d2``, terms in any order, the symbol exactly once."""
        begin = self.next
        coefficients = dict.fromkeys(dims, 0)
        symbols = 0
        while True:
            factor, name = self.term()
            if name == symbol and factor == 1:
                symbols += 1
            elif name in coefficients:
                coefficients[name] += factor
            else:
                self.refuse(f"{factor}*{name} is no term over dims {dims} and symbol {symbol}", self.next - 1)
            if not self.taken("+"):
                break
        if symbols != 1 or len(coefficients) != len(dims):
            self.refuse(f"a map is {symbol} + coefficient*dim + .., each dim named once, {symbol} once", begin)
        if any(abs(factor) > _LARGEST for factor in coefficients.values()):
            self.refuse("a coefficient does not fit 64 bits", begin)
        return tuple(coefficients.values())

    def term(self) -> tuple[int, str]:
        if self.tokens[self.next][:1].isalpha():
            name = self.word("a dim or the symbol")
            return (self.integer() if self.taken("*") else 1), name
        factor = self.integer()
        self.take("*")
        return factor, self.word("a dim")

    def parameters(self) -> tuple[InputArgument, ...]:
        self.take("(")
        parameters: list[InputArgument] = []
        while not self.taken(")"):
            if parameters:
                self.take(",")
            name = self.value()
            self.take(":")
            parameters.append(self.input_argument(name))
        return tuple(parameters)

    def input_argument(self, name: str) -> InputArgument:
        """Read ``!sdscbundle.input_arg<index, granularity=G, max_value=M>``, the two limits optional."""
        for token in ("!sdscbundle.input_arg", "<", "index"):
            self.take(token)
        limits: dict[str, int] = {}
        while self.taken(","):
            key = self.tokens[self.next]
            if key not in {"granularity", "max_value"} or key in limits:
                self.unexpected('"granularity" or "max_value", each once')
            self.next += 1
            self.take("=")
            limits[key] = self.integer()
        self.take(">")
        return InputArgument(name, limits.get("granularity"), limits.get("max_value"))

    def body(self, ends: tuple[str, ...], depth: int) -> tuple[Statement, ...]:
        """Read statements up to a token of ``ends``, which is left to come."""
        statements: list[Statement] = []
        while (token := self.tokens[self.next]) not in ends:
            if token[:1] == "%":
                statements.append(self.assignment())
            elif token == "sdscbundle.sdsc_execute":
                statements.append(self.execute())
            elif token == "scf.for":
                statements.append(self.loop(depth + 1))
            elif token[:1].isalpha():
                self.refuse(f'operation "{token[:80]}" is not in the subset that is read', code=UNKNOWN_OPERATION)
            else:
                self.unexpected("a statement")
        return tuple(statements)

    def loop(self, depth: int) -> For:
        if depth > MAX_LOOP_DEPTH:
            self.refuse(f"more than {MAX_LOOP_DEPTH} nested loops")
        self.take("scf.for")
        induction = self.value()
        self.take("=")
        lower = self.value()
        self.take("to")
        upper = self.value()
        self.take("step")
        step = self.value()
        self.take("{")
        body = self.body(("}", "scf.yield"), depth)
        self.taken("scf.yield")
        self.take("}")
        return For(induction, lower, upper, step, body)

    def assignment(self) -> Statement:
        result = self.value()
        self.take("=")
        operation = self.tokens[self.next]
        self.next += 1
        match operation:
            case "arith.constant":
                statement: Statement = Constant(result, self.integer())
                self.index_type()
            case "arith.addi":
                left = self.value()
                self.take(",")
                statement = Add(result, left, self.value())
                self.index_type()
            case "affine.apply":
                statement = self.affine_apply(result)
            case "sdscbundle.input_arg_extract":
                statement = self.extract(result)
            case "sdscbundle.device_mem_allocate":
                statement = DeviceMemoryAllocate(result, self.integer())
                self.take("bytes")
                self.index_type()
            case _:
                fact = f'operation "{operation[:80]}" is not in the subset that is read'
                self.refuse(fact, self.next - 1, UNKNOWN_OPERATION)
        return statement

    def index_type(self) -> None:
        self.take(":")
        self.take("index")

    def affine_apply(self, result: str) -> AffineApply:
        map_name = self.name("#", "the alias of a map")
        self.take("(")
        dims = self.values_until(")")
        self.take("[")
        symbol = self.value()
        self.take("]")
        return AffineApply(result, map_name, dims, symbol)

    def extract(self, result: str) -> ArgumentExtract:
        part = self.tokens[self.next]
        if part in {"granularity", "max_value"}:
            self.refuse(f'extracting "{part}" of an argument is not understood', code=UNKNOWN_OPERATION)
        self.take("value")
        self.take("from")
        argument = self.value()
        self.take(":")
        self.input_argument(argument)
        self.take("->")
        self.take("index")
        return ArgumentExtract(result, argument)

    def execute(self) -> SdscExecute:
        """Read a call; torch-spyre quotes the key of ``symbol_ids``, the public specification does not."""
        begin = self.next
        self.next += 1
        self.take("(")
        operands = self.values_until(")")
        self.take("{")
        filename: str | None = None
        symbol_ids: tuple[int, ...] | None = None
        while not self.taken("}"):
            if filename is not None or symbol_ids is not None:
                self.take(",")
            key = self.tokens[self.next].strip('"')
            if key not in {"sdsc_filename", "symbol_ids"}:
                self.refuse(f'attribute "{key[:80]}" is not in the subset that is read', code=UNKNOWN_OPERATION)
            if (filename if key == "sdsc_filename" else symbol_ids) is not None:
                self.refuse(f'attribute "{key}" stands twice')
            self.next += 1
            self.take("=")
            if key == "sdsc_filename":
                filename = self.string()
            else:
                symbol_ids = self.integers()
        if filename is None:
            self.refuse('attribute "sdsc_filename" is missing', begin)
        return SdscExecute(filename, operands, symbol_ids)

    def string(self) -> str:
        token = self.tokens[self.next]
        if len(token) < 2 or token[0] != '"' or token[-1] != '"':
            self.unexpected("a string")
        self.next += 1
        return _ESCAPE.sub(lambda found: _PLAIN_ESCAPES.get(found[1]) or chr(int(found[1], 16)), token[1:-1])

    def integers(self) -> tuple[int, ...]:
        self.take("[")
        numbers: list[int] = []
        while not self.taken("]"):
            if numbers:
                self.take(",")
            numbers.append(self.integer())
        return tuple(numbers)
