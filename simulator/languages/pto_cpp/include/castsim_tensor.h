// In place of the header of simpler's runtime: the descriptors of tensors that a kernel is handed.
#pragma once

#include "castsim_pto.hpp"

struct ChipTensor {
  struct { uint64_t addr, size; } buffer;
  uint64_t start_offset;
  uint32_t shapes[5], ndims;
};
using Tensor = ChipTensor;
