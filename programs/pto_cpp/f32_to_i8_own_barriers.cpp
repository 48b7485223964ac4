// The two casts of ../f32_to_i8_own_barriers.pto, ordered by events instead of flags written out.
#include <pto/pto-inst.hpp>

using namespace pto;

template <int Rows, int Cols>
AICORE void Narrow(__gm__ float *src, __gm__ int8_t *dst) {
  using Whole = TileShape2D<float, Rows, Cols>;
  using Pitch = BaseShape2D<float, Rows, Cols>;
  GlobalTensor<float, Whole, Pitch> from(src);
  GlobalTensor<int8_t, Whole, Pitch> into(dst);
  Tile<TileType::Vec, float, Rows, Cols> wide;
  Tile<TileType::Vec, half, Rows, Cols> middle;
  Tile<TileType::Vec, int8_t, Rows, Cols> slim;
  TASSIGN<0x0>(wide);
  TASSIGN<0x4000>(middle);
  TASSIGN<0x6000>(slim);

  Event<Op::TLOAD, Op::TCVT> loaded;
  Event<Op::TCVT, Op::TCVT> halved;
  Event<Op::TCVT, Op::TSTORE_VEC> narrowed;
  loaded = TLOAD(wide, from);
  halved = TCVT(middle, wide, RoundMode::CAST_RINT, loaded);
  narrowed = TCVT(slim, middle, RoundMode::CAST_RINT, SaturationMode::ON, halved);
  TSTORE(into, slim, narrowed);
}

__global__ AICORE void f32_to_i8_own_barriers(__gm__ void *src, __gm__ void *dst) {
  Narrow<16, 256>((__gm__ float *)src, (__gm__ int8_t *)dst);
}
