"""Pure transforms: DataFrames in, a DataFrame out; nothing is read, written or counted here."""
