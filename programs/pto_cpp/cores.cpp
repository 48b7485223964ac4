// Rows dealt out to cores and to the vector units of each; run it with --block I/N --sub J/M, or --all-blocks.
#include <pto/pto-inst.hpp>

using namespace pto;

extern "C" __global__ AICORE void scaled_rows(__gm__ uint8_t *x, __gm__ uint8_t *y, uint32_t rows, uint32_t cols, float scale) {
  using Line = Tile<TileType::Vec, float, 1, 1024, BLayout::RowMajor, 1, DYNAMIC>;
  using View = GlobalTensor<float, TileShape2D<float, DYNAMIC, DYNAMIC>, BaseShape2D<float, DYNAMIC, DYNAMIC>>;
  const uint32_t unit = get_block_idx() * get_subblockdim() + get_subblockid();
  const uint32_t units = get_block_num() * get_subblockdim();
  set_mask_norm();
  set_vector_mask(-1, -1);
  for (uint32_t row = unit; row < rows; row += units) {
    Line line(min(cols, 1024u));
    TASSIGN(line, 0);
    View from((__gm__ float *)x + row * cols, {1, (int)cols}, {1, (int)cols});
    View into((__gm__ float *)y + row * cols, {1, (int)cols}, {1, (int)cols});
    TLOAD(line, from);
    TSYNC<Op::ALL>();
    TMULS(line, line, scale * (float)(row + 1));
    TSYNC<Op::ALL>();
    TSTORE(into, line);
    TSYNC<Op::ALL>();
  }
}

extern "C" void launch_scaled_rows(uint32_t cores, void *stream, uint8_t *x, uint8_t *y, uint32_t rows, uint32_t cols,
                                   float scale) {
  scaled_rows<<<cores * 2, nullptr, stream>>>(x, y, rows, cols, scale);
}
