// Operations on every element, f32 and i16: each writes a row block of the result of its own, so that each can be told.
#include <pto/pto-inst.hpp>

using namespace pto;

constexpr int ROWS = 4, COLS = 64;
constexpr unsigned A = 0x0000, B = 0x1000, R = 0x2000, TMP = 0x3000, MASK = 0x4000;

template <typename T>
using Block = Tile<TileType::Vec, T, ROWS, COLS>;
template <typename T>
using Part = GlobalTensor<T, pto::Shape<1, 1, 1, ROWS, COLS>, pto::Stride<1, 1, 1, COLS, 1>>;

// Stores what an operation made, and waits until the tile may be written again.
template <typename T>
AICORE void Keep(Block<T> &tile, __gm__ T *&out) {
  Part<T> part(out);
  set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
  wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
  TSTORE(part, tile);
  set_flag(PIPE_MTE3, PIPE_V, EVENT_ID0);
  wait_flag(PIPE_MTE3, PIPE_V, EVENT_ID0);
  out += ROWS * COLS;
}

template <typename T>
AICORE void Load(__gm__ T *a, __gm__ T *b, Block<T> &tile_a, Block<T> &tile_b) {
  TASSIGN(tile_a, A);
  TASSIGN(tile_b, B);
  Part<T> part_a(a), part_b(b);
  TLOAD(tile_a, part_a);
  TLOAD(tile_b, part_b);
  set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
  wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
}

__global__ AICORE void floats(__gm__ float *a, __gm__ float *b, __gm__ float *out, float s) {
  Block<float> x, y, r, tmp;
  Load<float>(a, b, x, y);
  TASSIGN(r, R);
  TASSIGN(tmp, TMP);
  TADD(r, x, y), Keep<float>(r, out);
  TSUB<Block<float>, Block<float>, Block<float>>(r, x, y), Keep<float>(r, out);
  TMUL(r, x, y), Keep<float>(r, out);
  TDIV<DivAlgorithm::DEFAULT>(r, x, y), Keep<float>(r, out);
  TMAX(r, x, y), Keep<float>(r, out);
  TMIN(r, x, y), Keep<float>(r, out);
  TADDS(r, x, s), Keep<float>(r, out);
  TSUBS(r, x, s), Keep<float>(r, out);
  TMULS(r, x, s), Keep<float>(r, out);
  TDIVS(r, x, s), Keep<float>(r, out);
  TDIVS(r, s, x), Keep<float>(r, out);
  TMAXS(r, x, s), Keep<float>(r, out);
  TMINS(r, x, s), Keep<float>(r, out);
  TEXPANDS(r, s), Keep<float>(r, out);
  TABS(r, x), Keep<float>(r, out);
  TNEG(r, x), Keep<float>(r, out);
  TRELU(r, x), Keep<float>(r, out);
  TEXPANDS(r, 1.0f);
  pipe_barrier(PIPE_V);
  TAXPY(r, x, s), Keep<float>(r, out);
  TABS(tmp, x);
  pipe_barrier(PIPE_V);
  TSQRT(r, tmp), Keep<float>(r, out);
  TRSQRT(r, tmp), Keep<float>(r, out);
  TRECIP(r, tmp), Keep<float>(r, out);
  TLOG<LogAlgorithm::DEFAULT>(r, tmp), Keep<float>(r, out);
  TEXP(r, x), Keep<float>(r, out);
  TMOV(r, x), Keep<float>(r, out);
}

__global__ AICORE void integers(__gm__ int16_t *a, __gm__ int16_t *b, __gm__ int16_t *out, int16_t s) {
  Block<int16_t> x, y, r, tmp;
  Load<int16_t>(a, b, x, y);
  TASSIGN(r, R);
  TASSIGN(tmp, TMP);
  TAND(r, x, y), Keep<int16_t>(r, out);
  TOR(r, x, y), Keep<int16_t>(r, out);
  TXOR(r, x, y, tmp), Keep<int16_t>(r, out);
  TNOT(r, x), Keep<int16_t>(r, out);
  TANDS(r, x, s), Keep<int16_t>(r, out);
  TORS(r, x, s), Keep<int16_t>(r, out);
  TXORS(r, x, s, tmp), Keep<int16_t>(r, out);
  TADD(r, x, y), Keep<int16_t>(r, out);
  TMUL(r, x, y), Keep<int16_t>(r, out);
  TMAX(r, x, y), Keep<int16_t>(r, out);
}

// Shifts by the elements of another tile, unsigned; a mask of bits, and what it chooses.
__global__ AICORE void shifts_and_masks(__gm__ uint16_t *a, __gm__ uint16_t *b, __gm__ uint16_t *out, __gm__ float *c,
                                        __gm__ float *chosen) {
  {
    Block<uint16_t> x, y, r;
    Load<uint16_t>(a, b, x, y);
    TASSIGN(r, R);
    TSHL(r, x, y), Keep<uint16_t>(r, out);
    TSHR(r, x, y), Keep<uint16_t>(r, out);
    TANDS(r, x, 0xF00F), Keep<uint16_t>(r, out);
  }
  pipe_barrier(PIPE_ALL);
  Block<float> x, y, r, tmp;
  Tile<TileType::Vec, uint8_t, ROWS, 32> mask;
  Load<float>(c, c + ROWS * COLS, x, y);
  TASSIGN(r, R);
  TASSIGN(tmp, TMP);
  TASSIGN(mask, MASK);
  TCMP(mask, x, y, CmpMode::LT);
  pipe_barrier(PIPE_V);
  TSEL(r, mask, x, y, tmp), Keep<float>(r, chosen);
  TCMPS(mask, x, 0.5f, CmpMode::GE);
  pipe_barrier(PIPE_V);
  TSELS(r, mask, x, tmp, -1.0f), Keep<float>(r, chosen);
}

// Remainders, and slopes of negative elements.
__global__ AICORE void remainders(__gm__ float *a, __gm__ float *b, __gm__ float *out, float s) {
  Block<float> x, y, r;
  Tile<TileType::Vec, uint8_t, ROWS, COLS * 4> tmp;
  Load<float>(a, b, x, y);
  TASSIGN(r, R);
  TASSIGN(tmp, TMP);
  TFMODS(r, x, s), Keep<float>(r, out);
  TFMOD(r, x, y), Keep<float>(r, out);
  TPRELU(r, x, y, tmp), Keep<float>(r, out);
  TLRELU(r, x, s), Keep<float>(r, out);
}
