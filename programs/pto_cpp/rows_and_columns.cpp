// Reductions and expansions along rows and along columns, and parts of tiles that are combined.
#include <pto/pto-inst.hpp>

using namespace pto;

constexpr int ROWS = 16, COLS = 64;
constexpr unsigned X = 0, R = 0x1000, TMP = 0x2000, COLUMN = 0x3000, ROW = 0x3100, PLACES = 0x3400;

using Block = Tile<TileType::Vec, float, ROWS, COLS>;
using Column = Tile<TileType::Vec, float, ROWS, 1, BLayout::ColMajor>;
using FlatColumn = Tile<TileType::Vec, float, 1, ROWS>;
using Row = Tile<TileType::Vec, float, 1, COLS>;
using Places = Tile<TileType::Vec, int32_t, 1, COLS>;

// What has been made, stored as rows of any tile.
template <typename TileData, typename T>
AICORE void Keep(TileData &tile, __gm__ T *&out) {
  constexpr int count = TileData::Rows * TileData::Cols;
  using Whole = pto::Shape<1, 1, 1, TileData::Rows, TileData::Cols>;
  GlobalTensor<T, Whole, pto::Stride<count, count, count, TileData::Cols, 1>> part(out);
  set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
  wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
  TSTORE(part, tile);
  set_flag(PIPE_MTE3, PIPE_V, EVENT_ID0);
  wait_flag(PIPE_MTE3, PIPE_V, EVENT_ID0);
  out += count;
}

#define KEPT(OPERATION, TILE) \
  OPERATION;                  \
  Keep(TILE, out)

struct Tiles {
  Block x, r, tmp;
  Column column;
  FlatColumn flat;
  Row row;
  AICORE Tiles() {
    TASSIGN(x, X);
    TASSIGN(r, R);
    TASSIGN(tmp, TMP);
    TASSIGN(column, COLUMN);
    TASSIGN(row, ROW);
    TRESHAPE(flat, column);
  }
};

AICORE void LoadAll(Tiles &tiles, __gm__ float *x, __gm__ float *row) {
  GlobalTensor<float, TileShape2D<float, ROWS, COLS>, BaseShape2D<float, ROWS, COLS>> block(x);
  GlobalTensor<float, pto::Shape<1, 1, 1, 1, COLS>, pto::Stride<COLS, COLS, COLS, COLS, 1>> line(row);
  TLOAD(tiles.x, block);
  TLOAD(tiles.row, line);
  set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
  wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
}

extern "C" __global__ AICORE void along_rows(__gm__ float *x, __gm__ float *row, __gm__ float *out) {
  Tiles t;
  LoadAll(t, x, row);
  KEPT(TROWMAX(t.column, t.x, t.tmp), t.flat);
  KEPT(TROWMIN(t.column, t.x, t.tmp), t.flat);
  KEPT(TROWPROD(t.column, t.x, t.tmp), t.flat);
  KEPT(TROWSUM(t.column, t.x, t.tmp), t.flat);
  KEPT(TROWEXPANDSUB(t.r, t.x, t.column, t.tmp), t.r);
  KEPT(TROWEXPANDMUL(t.r, t.x, t.column), t.r);
  KEPT(TROWEXPANDDIV(t.r, t.x, t.column), t.r);
  KEPT(TROWEXPANDADD(t.r, t.x, t.column), t.r);
  KEPT(TROWEXPANDMIN(t.r, t.x, t.column), t.r);
  KEPT(TROWEXPANDMAX(t.r, t.x, t.column), t.r);
  Tile<TileType::Vec, float, ROWS, 8, BLayout::RowMajor, ROWS, 1> narrow;
  TASSIGN(narrow, PLACES);
  TROWSUM(narrow, t.x, t.tmp);
  pipe_barrier(PIPE_V);
  KEPT(TROWEXPAND(t.r, narrow), t.r);
}

extern "C" __global__ AICORE void along_columns(__gm__ float *x, __gm__ float *row, __gm__ float *out,
                                                __gm__ int32_t *places) {
  Tiles t;
  LoadAll(t, x, row);
  KEPT(TCOLSUM(t.row, t.x), t.row);
  KEPT(TCOLSUM(t.row, t.x, t.tmp, true), t.row);
  KEPT(TCOLMAX(t.row, t.x), t.row);
  KEPT(TCOLMIN(t.row, t.x), t.row);
  KEPT(TCOLPROD(t.row, t.x), t.row);
  KEPT(TCOLEXPAND(t.r, t.row), t.r);
  KEPT(TCOLEXPAND_IMPL(t.r, t.row), t.r);
  KEPT(TCOLEXPANDMUL(t.r, t.x, t.row), t.r);
  KEPT(TCOLEXPANDADD(t.r, t.x, t.row), t.r);
  KEPT(TCOLEXPANDMAX(t.r, t.x, t.row), t.r);
  KEPT(TCOLEXPANDMIN(t.r, t.x, t.row), t.r);
  Places found;
  TASSIGN(found, PLACES);
  TCOLARGMAX(found, t.x, t.tmp);
  Keep(found, places);
}

// Where both operands are valid they are combined, elsewhere the one that is valid is taken.
extern "C" __global__ AICORE void parts(__gm__ float *x, __gm__ float *row, __gm__ float *out, int rows) {
  using Some = Tile<TileType::Vec, float, ROWS, COLS, BLayout::RowMajor, DYNAMIC, COLS>;
  Tiles t;
  LoadAll(t, x, row);
  Some some(rows);
  TASSIGN(some, TMP);
  TMULS(t.tmp, t.x, 2.0f);
  pipe_barrier(PIPE_V);
  KEPT(TPARTADD(t.r, t.x, some), t.r);
  KEPT(TPARTMUL(t.r, t.x, some), t.r);
  KEPT((TPARTMAX<Block, Block, Some>(t.r, t.x, some)), t.r);
  KEPT(TPARTMIN(t.r, t.x, some), t.r);
}
