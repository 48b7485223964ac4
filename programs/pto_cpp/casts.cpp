// The four overloads of TCVT, with and without events to wait for; a template, so that --entry says of which types.
#include <pto/pto-inst.hpp>

using namespace pto;

template <typename S, typename D, int Rows, int Cols>
__global__ AICORE void cast_tile(__gm__ S *src, __gm__ D *dst) {
  using Source = Tile<TileType::Vec, S, Rows, Cols>;
  using Result = Tile<TileType::Vec, D, Rows, Cols>;
  using Scratch = Tile<TileType::Vec, int32_t, 8, 512>;
  constexpr RoundMode MODES[] = {RoundMode::CAST_RINT, RoundMode::CAST_FLOOR, RoundMode::CAST_CEIL, RoundMode::CAST_TRUNC};
  Source source;
  Result result;
  Scratch tmp;
  TASSIGN(source, 0x0);
  TASSIGN(result, 0x8000);
  TASSIGN(tmp, 0x10000);
  GlobalTensor<S, pto::Shape<1, 1, 1, Rows, Cols>, pto::Stride<1, 1, 1, Cols, 1>> from(src);
  Event<Op::TLOAD, Op::TCVT> loaded;
  loaded = TLOAD(source, from);
  for (int number = 0; number < 4; ++number) {
    GlobalTensor<D, pto::Shape<1, 1, 1, Rows, Cols>, pto::Stride<1, 1, 1, Cols, 1>> into(dst + number * Rows * Cols);
    Event<Op::TCVT, Op::TSTORE_VEC> converted;
    Event<Op::TSTORE_VEC, Op::TCVT> stored;
    if (number == 0) {
      converted = TCVT(result, source, MODES[number], loaded);
    } else if (number == 1) {
      converted = TCVT(result, source, MODES[number], SaturationMode::ON);
    } else if (number == 2) {
      converted = TCVT(result, source, tmp, MODES[number]);
    } else {
      converted = TCVT(result, source, tmp, MODES[number], SaturationMode::OFF);
    }
    stored = TSTORE(into, result, converted);
    TSYNC(stored);
  }
}

template __global__ AICORE void cast_tile<float, half, 4, 64>(__gm__ float *, __gm__ half *);
