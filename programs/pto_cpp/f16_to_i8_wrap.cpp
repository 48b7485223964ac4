// The cast of ../f16_to_i8_wrap.pto through scratch, as documents write one: nothing placed, nothing ordered.
#include <pto/pto-inst.hpp>

using namespace pto;

__global__ AICORE void f16_to_i8_wrap(__gm__ half *src, __gm__ int8_t *dst) {
  GlobalTensor<half, pto::Shape<1, 1, 1, 8, 160>, pto::Stride<1, 1, 1, 160, 1>> from(src);
  GlobalTensor<int8_t, pto::Shape<1, 1, 1, 8, 160>, pto::Stride<1, 1, 1, 160, 1>> into(dst);
  Tile<TileType::Vec, half, 8, 160> halves;
  Tile<TileType::Vec, int8_t, 8, 160> bytes;
  Tile<TileType::Vec, int32_t, 1, 64> tmp;
  TLOAD(halves, from);
  TCVT(bytes, halves, tmp, RoundMode::CAST_TRUNC, SaturationMode::OFF);
  TSTORE(into, bytes);
}
