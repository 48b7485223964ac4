// The cast of ../f32_to_i32_barriers.pto: tiles without addresses, barriers on all pipes.
#include <pto/pto-inst.hpp>

using namespace pto;

__global__ AICORE void f32_to_i32_barriers(__gm__ float *src, __gm__ int32_t *dst) {
  GlobalTensor<float, pto::Shape<1, 1, 1, 4, 64>, pto::Stride<256, 256, 256, 64, 1>> from(src);
  GlobalTensor<int32_t, pto::Shape<1, 1, 1, 4, 64>, pto::Stride<256, 256, 256, 64, 1>> into(dst);
  Tile<TileType::Vec, float, 4, 64> real;
  Tile<TileType::Vec, int32_t, 4, 64> whole;
  TLOAD(real, from);
  pipe_barrier(PIPE_ALL);
  TCVT(whole, real, RoundMode::CAST_CEIL);
  pipe_barrier(PIPE_ALL);
  TSTORE(into, whole);
  pipe_barrier(PIPE_ALL);
}
