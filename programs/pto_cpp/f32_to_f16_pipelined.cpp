// The double-buffered cast of ../f32_to_f16_pipelined.pto: addresses and flags of its own, a launch on one core.
#include <pto/pto-inst.hpp>

using namespace pto;

constexpr int ROWS = 512, COLS = 512, HALF = 16;
constexpr uint64_t WIDE[] = {0, 32768}, SLIM[] = {65536, 81920};

AICORE inline void SignalFree() {
  for (int slot = 0; slot < 2; ++slot) {
    set_flag(PIPE_V, PIPE_MTE2, (event_t)slot);
  }
  for (int slot = 0; slot < 2; ++slot) {
    set_flag(PIPE_MTE3, PIPE_V, (event_t)slot);
  }
}

extern "C" __global__ AICORE void f32_to_f16_pipelined(__gm__ float *src, __gm__ half *dst) {
  using Wide = Tile<TileType::Vec, float, HALF, COLS>;
  using Slim = Tile<TileType::Vec, half, HALF, COLS>;
  using Part = pto::Shape<1, 1, 1, HALF, COLS>;
  using Pitch = pto::Stride<1, 1, 1, COLS, 1>;
  Wide wide[2];
  Slim slim[2];
  for (int slot = 0; slot < 2; ++slot) {
    TASSIGN(wide[slot], WIDE[slot]);
    TASSIGN(slim[slot], SLIM[slot]);
  }
  SignalFree();
  for (int row = 0; row < ROWS; row += 2 * HALF) {
    for (int slot = 0; slot < 2; ++slot) {
      GlobalTensor<float, Part, Pitch> part(src + (row + slot * HALF) * COLS);
      wait_flag(PIPE_V, PIPE_MTE2, (event_t)slot);
      TLOAD(wide[slot], part);
      set_flag(PIPE_MTE2, PIPE_V, (event_t)slot);
    }
    for (int slot = 0; slot < 2; ++slot) {
      wait_flag(PIPE_MTE2, PIPE_V, (event_t)slot);
      wait_flag(PIPE_MTE3, PIPE_V, (event_t)slot);
      TCVT(slim[slot], wide[slot], RoundMode::CAST_ODD);
      set_flag(PIPE_V, PIPE_MTE2, (event_t)slot);
      set_flag(PIPE_V, PIPE_MTE3, (event_t)slot);
    }
    for (int slot = 0; slot < 2; ++slot) {
      GlobalTensor<half, Part, Pitch> part(dst + (row + slot * HALF) * COLS);
      wait_flag(PIPE_V, PIPE_MTE3, (event_t)slot);
      TSTORE(part, slim[slot]);
      set_flag(PIPE_MTE3, PIPE_V, (event_t)slot);
    }
  }
  for (int slot = 0; slot < 2; ++slot) {
    wait_flag(PIPE_V, PIPE_MTE2, (event_t)slot);
  }
  for (int slot = 0; slot < 2; ++slot) {
    wait_flag(PIPE_MTE3, PIPE_V, (event_t)slot);
  }
}

void launch(void *stream, float *src, half *dst) { f32_to_f16_pipelined<<<1, nullptr, stream>>>(src, dst); }
