// Elements in other places: numbers, gathers, sorted lists, parts of tiles, padding, transposition.
#include "pto/pto-inst.hpp"

using namespace pto;

#define AT(TILE, ADDRESS) TASSIGN(TILE, ADDRESS)

template <typename T, int Rows, int Cols>
using Vec = Tile<TileType::Vec, T, Rows, Cols>;

template <typename TileData, typename T>
AICORE void Fetch(TileData &tile, __gm__ T *in) {
  using Strides = pto::Stride<DYNAMIC, DYNAMIC, DYNAMIC, DYNAMIC, 1>;
  const int rows = tile.GetValidRow(), cols = tile.GetValidCol();
  pto::Shape shape(1, 1, 1, rows, cols);
  Strides strides(rows * cols, rows * cols, rows * cols, cols);
  GlobalTensor<T, decltype(shape), Strides> part(in, shape, strides);
  TLOAD_IMPL(tile, part);
}

template <typename TileData, typename T>
AICORE void Keep(TileData &tile, __gm__ T *out) {
  using Strides = pto::Stride<DYNAMIC, DYNAMIC, DYNAMIC, DYNAMIC, 1>;
  const int rows = tile.GetValidRow(), cols = tile.GetValidCol();
  pto::Shape shape(1, 1, 1, rows, cols);
  Strides strides(rows * cols, rows * cols, rows * cols, cols);
  GlobalTensor<T, decltype(shape), Strides> part(out, shape, strides);
  TSTORE_IMPL(part, tile);
}

// Every step waits for all pipes: this shows operations, not speed.
AICORE inline void All() { pipe_barrier(PIPE_ALL); }

__global__ AICORE void gathers(__gm__ float *x, __gm__ uint32_t *places, __gm__ float *out, __gm__ int32_t *numbers) {
  Vec<float, 8, 32> source;
  Vec<uint32_t, 8, 32> index, tmp;
  Vec<float, 8, 32> found;
  Vec<float, 8, 16> even, odd;
  Vec<int32_t, 1, 64> ramp;
  AT(source, 0), AT(index, 0x400), AT(tmp, 0x800), AT(found, 0xC00), AT(even, 0x1000), AT(odd, 0x1200), AT(ramp, 0x1400);
  Fetch(source, x);
  Fetch(index, places);
  All();
  TGATHER(found, source, index, tmp);
  TGATHER<Vec<float, 8, 16>, Vec<float, 8, 32>, MaskPattern::P0101>(even, source);
  TGATHER<Vec<float, 8, 16>, Vec<float, 8, 32>, MaskPattern::P1010>(odd, source);
  TCI<Vec<int32_t, 1, 64>, int32_t, 0>(ramp, 5);
  All();
  Keep(found, out);
  Keep(even, out + 256);
  Keep(odd, out + 384);
  Keep(ramp, numbers);
}

// The 32 largest of 128, with their numbers: groups of 32 sorted, four groups merged.
__global__ AICORE void largest(__gm__ float *x, __gm__ float *pairs) {
  Vec<float, 1, 128> source;
  Vec<uint32_t, 1, 128> number;
  Vec<float, 1, 256> sorted, merged;
  AT(source, 0), AT(number, 0x200), AT(sorted, 0x400), AT(merged, 0x800);
  Fetch(source, x);
  TCI<Vec<uint32_t, 1, 128>, uint32_t, 0>(number, 0u);
  All();
  TSORT32(sorted, source, number);
  All();
  TMRGSORT(merged, sorted, 64);
  All();
  Tile<TileType::Vec, float, 1, 256, BLayout::RowMajor, 1, DYNAMIC> first(64);
  TRESHAPE(first, merged);
  Keep(first, pairs);
}

// Two sorted lists merged into one.
__global__ AICORE void merged(__gm__ float *x, __gm__ float *pairs) {
  Vec<float, 1, 64> source;
  Vec<uint32_t, 1, 64> number;
  Vec<float, 1, 128> sorted, both, tmp;
  Vec<float, 1, 64> one, two;
  AT(source, 0), AT(number, 0x200), AT(sorted, 0x400), AT(both, 0x800), AT(tmp, 0xC00);
  Fetch(source, x);
  TCI<Vec<uint32_t, 1, 64>, uint32_t, 0>(number, 0u);
  All();
  TSORT32(sorted, source, number);
  All();
  TSUBVIEW(one, sorted, 0, 0);
  TSUBVIEW(two, sorted, 0, 64);
  MrgSortExecutedNumList done;
  TMRGSORT<Vec<float, 1, 128>, Vec<float, 1, 128>, Vec<float, 1, 64>, Vec<float, 1, 64>, false>(both, done, tmp, one, two);
  All();
  Keep(both, pairs);
}

__global__ AICORE void moves(__gm__ float *x, __gm__ float *out, int rows, int cols) {
  using Padded = Tile<TileType::Vec, float, 16, 32, BLayout::RowMajor, 16, 32, SLayout::NoneBox, TileConfig::fractalABSize,
                      PadValue::Max>;
  using Inner = Tile<TileType::Vec, float, 16, 32, BLayout::RowMajor, DYNAMIC, DYNAMIC>;
  Inner part(rows, cols);
  Padded filled, same;
  Vec<float, 32, 16> turned, tmp;
  Vec<float, 16, 64> joined;
  Vec<float, 8, 16> corner;
  AT(part, 0), AT(same, 0), AT(filled, 0x800), AT(turned, 0x1000), AT(tmp, 0x1800), AT(joined, 0x2000), AT(corner, 0x3000);
  Fetch(part, x);
  All();
  TFILLPAD(filled, part);
  TFILLPAD_INPLACE(same, part);
  All();
  TTRANS(turned, filled, tmp);
  TCONCAT(joined, filled, same);
  All();
  TEXTRACT(corner, joined, 0, 0);
  All();
  TINSERT(joined, corner, 8, 32);
  All();
  Keep(filled, out);
  Keep(turned, out + 512);
  Keep(joined, out + 1024);
  All();
  TCONCAT_IMPL(joined, same, filled);
  All();
  Keep(joined, out + 2048);
}
