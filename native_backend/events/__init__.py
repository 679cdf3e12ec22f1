"""Events as they are read: windows of stores, keys, marks, selections."""
