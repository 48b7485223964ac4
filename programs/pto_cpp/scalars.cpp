// What the scalar unit reads and writes: lengths and tables in global memory, elements of tiles, paths that rest on them.
#include <pto/pto-inst.hpp>

using namespace pto;

constexpr int MOST = 64;

// Sequences of different lengths behind each other: each is scaled by its own largest element.
__global__ AICORE void by_lengths(__gm__ float *x, __gm__ int32_t *starts, __gm__ float *y, int32_t sequences) {
  using Some = Tile<TileType::Vec, float, 1, MOST, BLayout::RowMajor, 1, DYNAMIC>;
  using Open = GlobalTensor<float, pto::Shape<1, 1, 1, 1, DYNAMIC>, pto::Stride<1, 1, 1, 1, 1>>;
  Tile<TileType::Vec, float, 8, 1, BLayout::ColMajor, 1, 1> largest;
  Tile<TileType::Vec, float, 1, MOST> tmp;
  TASSIGN(largest, 0x100);
  TASSIGN(tmp, 0x200);
  for (int32_t sequence = 0; sequence < sequences; ++sequence) {
    const int32_t start = starts[sequence], length = starts[sequence + 1] - start;
    if (length == 0) {
      continue;
    }
    Some tile(length);
    TASSIGN(tile, 0);
    Open from(x + start, {length}), into(y + start, {length});
    TLOAD(tile, from);
    set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    TROWMAX(largest, tile, tmp);
    set_flag(PIPE_V, PIPE_S, EVENT_ID0);
    wait_flag(PIPE_V, PIPE_S, EVENT_ID0);
    const float most = largest.GetValue(0);
    if (most > 0.0f) {
      TMULS(tile, tile, 1.0f / most);
    } else {
      TEXPANDS(tile, 0.0f);
    }
    set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    TSTORE(into, tile);
    set_flag(PIPE_MTE3, PIPE_MTE2, EVENT_ID0);
    wait_flag(PIPE_MTE3, PIPE_MTE2, EVENT_ID0);
    pipe_barrier(PIPE_ALL);
  }
}

// Halves a tile until its first element is below a limit; writes how often, and where it went, by assignments.
__global__ AICORE void until(__gm__ half *x, __gm__ half *y, __gm__ int32_t *counts, float limit) {
  Tile<TileType::Vec, half, 1, MOST> tile;
  GlobalTensor<half, pto::Shape<1, 1, 1, 1, MOST>, pto::Stride<1, 1, 1, 1, 1>> from(x), into(y);
  TASSIGN(tile, 0);
  TLOAD(tile, from);
  pipe_barrier(PIPE_ALL);
  int32_t count = 0;
  while ((float)tile.GetValue(0) >= limit) {
    pipe_barrier(PIPE_ALL);
    TMULS(tile, tile, (half)0.5f);
    pipe_barrier(PIPE_ALL);
    ++count;
  }
  tile.SetValue(1, (half)count);
  counts[0] = count;
  counts[3] = counts[0] + 1;
  pipe_barrier(PIPE_ALL);
  TSTORE(into, tile);
  dcci((__gm__ void *)counts, SINGLE_CACHE_LINE);
}
