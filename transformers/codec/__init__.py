"""Our AMQP 1.0 codec, gathered under one name: values (`amqp_values`), `decode` and `skip`, `encode`.

    value, next_offset = decode(data, offset)
    next_offset = skip(data, offset)
    octets = encode(Described(0x24, []))

May import: `transformers.amqp_*`.
"""

from transformers.amqp_decoder import DEPTH_MAX, VALUES_MAX, DecodeError, decode, skip
from transformers.amqp_encoder import encode
from transformers.amqp_values import (
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
