# For every make that a build script runs: the last of these flags count.
override CFLAGS += -O0 -g0
override CXXFLAGS += -O0 -g0
