"""Our AMQP 1.0 codec, gathered under one name: values (`amqp_values`), `decode` and `skip`, `encode`.

value, next_offset = decode(data, offset)
next_offset = skip(data, offset)
octets = encode(Described(0x24, []))
"""

from transformers.codec.decoder import DEPTH_MAX, VALUES_MAX, DecodeError, decode, skip
from transformers.codec.encoder import encode
from transformers.codec.values import (
    AmqpMap,
    Array,
    Byte,
    Char,
    Decimal,
    Described,
    Float,
    Int,
    Short,
    Symbol,
    Timestamp,
    UByte,
    UInt,
    ULong,
    UShort,
)

__all__ = [
    "DEPTH_MAX",
    "VALUES_MAX",
    "AmqpMap",
    "Array",
    "Byte",
    "Char",
    "Decimal",
    "DecodeError",
    "Described",
    "Float",
    "Int",
    "Short",
    "Symbol",
    "Timestamp",
    "UByte",
    "UInt",
    "ULong",
    "UShort",
    "decode",
    "encode",
    "skip",
]
