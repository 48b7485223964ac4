// The kernel of ../kernels/quantise_rows_i8_a2a3.pto with flags and addresses of its own: rows scaled by their largest
// magnitude, rounded to int8.
#include <pto/pto-inst.hpp>

using namespace pto;

namespace {

constexpr int BLOCK = 8, COLS = 1024;

// Bytes of the buffer, one tile behind the other.
constexpr unsigned X16 = 0, X = X16 + BLOCK * COLS * 2, MAGNITUDE = X + BLOCK * COLS * 4, TMP = MAGNITUDE + BLOCK * COLS * 4,
                   LARGEST = TMP + BLOCK * COLS * 4, SAFE = LARGEST + 32, SCALE = SAFE + 32, INVERSE = SCALE + 32,
                   HALVES = INVERSE + 32, BYTES = HALVES + BLOCK * COLS * 2;
static_assert(BYTES + BLOCK * COLS <= 192 * 1024, "the tiles do not fit into the buffer");

template <typename T>
using Rows = Tile<TileType::Vec, T, BLOCK, COLS>;
using Column = Tile<TileType::Vec, float, BLOCK, 1, BLayout::ColMajor>;
using Row = Tile<TileType::Vec, float, 1, BLOCK>;

template <typename T>
AICORE T Placed(unsigned address) {
  T tile;
  TASSIGN(tile, address);
  return tile;
}

AICORE inline void Ordered() { pipe_barrier(PIPE_V); }

}  // namespace

__global__ AICORE void quantise_rows_i8(__gm__ bfloat16_t *src, __gm__ int8_t *q_out, __gm__ float *scales, int32_t rows) {
  auto x16 = Placed<Rows<bfloat16_t>>(X16);
  auto x = Placed<Rows<float>>(X), magnitude = Placed<Rows<float>>(MAGNITUDE), tmp = Placed<Rows<float>>(TMP);
  auto halves = Placed<Rows<half>>(HALVES);
  auto bytes = Placed<Rows<int8_t>>(BYTES);
  auto largest = Placed<Column>(LARGEST);
  auto safe = Placed<Row>(SAFE), scale = Placed<Row>(SCALE), inverse = Placed<Row>(INVERSE);
  Row flat;
  Column standing;
  for (int32_t row = 0; row < rows; row += BLOCK) {
    GlobalTensor<bfloat16_t, pto::Shape<1, 1, 1, BLOCK, COLS>, pto::Stride<1, 1, 1, COLS, 1>> from(src + row * COLS);
    GlobalTensor<int8_t, pto::Shape<1, 1, 1, BLOCK, COLS>, pto::Stride<1, 1, 1, COLS, 1>> into(q_out + row * COLS);
    GlobalTensor<float, pto::Shape<1, 1, 1, 1, BLOCK>, pto::Stride<1, 1, 1, BLOCK, 1>> factors(scales + row);
    if (row > 0) {
      wait_flag(PIPE_V, PIPE_MTE2, EVENT_ID0);
    }
    TLOAD(x16, from);
    set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    TCVT(x, x16, RoundMode::CAST_NONE);
    if (row + BLOCK < rows) {
      set_flag(PIPE_V, PIPE_MTE2, EVENT_ID0);
    }
    Ordered();
    TABS(magnitude, x);
    Ordered();
    TROWMAX(largest, magnitude, tmp);
    TRESHAPE(flat, largest);
    Ordered();
    TMAXS(safe, flat, 1.0e-12f);
    Ordered();
    if (row > 0) {
      wait_flag(PIPE_MTE3, PIPE_V, EVENT_ID0);
    }
    TDIVS(scale, safe, 127.0f);
    Ordered();
    TRECIP(inverse, scale);
    TRESHAPE(standing, inverse);
    Ordered();
    TROWEXPANDMUL(magnitude, x, standing, tmp);
    Ordered();
    TMINS(magnitude, magnitude, 127.0f);
    Ordered();
    TMAXS(magnitude, magnitude, -127.0f);
    Ordered();
    TCVT(halves, magnitude, RoundMode::CAST_RINT);
    Ordered();
    TCVT(bytes, halves, RoundMode::CAST_RINT, SaturationMode::ON);
    set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    TSTORE(into, bytes);
    TSTORE(factors, scale);
    if (row + BLOCK < rows) {
      set_flag(PIPE_MTE3, PIPE_V, EVENT_ID0);
    }
  }
}
