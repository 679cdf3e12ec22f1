"""What the tests of several rooms and the benchmarks are made of. It imports no test and no benchmark."""
