// In place of a header of huawei-csl/pto-kernels that casts f16 to packed int4 by instructions below tiles.
// Here each row is cast by TCVT, whole repeats and the columns left over apart, so that the nibbles lie side by side.
#pragma once

#include "castsim_pto.hpp"
 namespace fast_hadamard_int4 {
 template <pto::AnyTile D, pto::AnyTile S>
CASTSIM_CALL void TCVT_FP16_TO_INT4_PACKED(D &dst, S &src, pto::RoundMode mode) {
  using namespace pto;
  constexpr int64_t LANES = 128, MOST = 255 * LANES;
  const int64_t cols = src.valid_cols, whole = cols / LANES * LANES;
  for (int64_t row = 0; row < src.valid_rows; ++row)
    for (int64_t first = 0; first < cols;) {
      const int64_t count = first >= whole ? cols - first : whole - first < MOST ? whole - first : MOST;
      Tile<TileType::Vec, half, 1, LANES> from;
      Tile<TileType::Vec, int4b_t, 1, LANES> into;
      from.cols = into.cols = int((count + 63) / 64 * 64);
      from.valid_cols = into.valid_cols = int(count);
      from.address = src.address + (row * S::RowStride + first) * 2;
      into.address = dst.address + row * D::RowStride + first / 2;
      castsim_calls::issue(CASTSIM_HERE, PIPE_V, "TCVT", {}, into, from, mode);
      first += count;
    }
}
 }  // namespace fast_hadamard_int4
