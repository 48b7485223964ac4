// High-level functions that are short loops of basic calls, by castsim's own sequences: values agree with the library's to
// rounding, cycles are assumed, of which each call warns.

namespace AscendC {
namespace castsim_calls {
// Steps on `count` elements, of f32 if the tensors are narrower; temporaries lie at the end of the given
// room, else of the buffer.
struct Steps {
  const void *place;
  const char *name;
  long long count;
  castsim::Local room;
  Steps(const void *where, const char *called, long long elements, const castsim::Local *given) : place(where), name(called), count(elements) {
    castsim::note(place, std::string(name) + " runs by castsim's own sequence of instructions: its cycles are assumed");
    room.low = GetTPipePtr()->castsim_free(), room.high = castsim::SCRATCH;
    if (given != nullptr && given->high - given->address > room.high - room.low) room = *given, room.low = given->address;
    room.address = room.high / 32 * 32;
  }
  LocalTensor<float> temporary() {
    room.address -= (count * 4 + 31) / 32 * 32;
    if (room.address < room.low) castsim::refuse(place, std::string(name) + " needs more room for what is between");
    LocalTensor<float> own = room;
    own.count = uint32_t(count);
    return own;
  }
  void operator()(const char *mnemonic, const castsim::Words &words) const {
    castsim::counted(place, count, [&] { castsim::instruction(place, name, mnemonic, 1, words); });
    castsim::barrier(place, PIPE_V);
  }
  void scalar(const char *mnemonic, const LocalTensor<float> &to, const LocalTensor<float> &from, float value) const {
    (*this)(mnemonic, {operand(to), operand(from), castsim::scalar<float>(value)});
  }
  void fill(const LocalTensor<float> &to, float value) const { (*this)("vector_dup", {operand(to), castsim::scalar<float>(value)}); }
  void two(const char *mnemonic, const LocalTensor<float> &to, const LocalTensor<float> &a, const LocalTensor<float> &b) const {
    (*this)(mnemonic, {operand(to), operand(a), operand(b)});
  }
  template <typename T, typename U> void cast(const LocalTensor<T> &to, const LocalTensor<U> &from, RoundMode mode) const {
    using W = castsim::Wider<T, U>;
    (*this)("cast", {operand(to, 1, castsim::STEP<T, W>), operand(from, 1, castsim::STEP<U, W>), castsim::attribute("mode", (long long)mode)});
  }
};
using Wide = LocalTensor<float>;
inline void round_to(Steps &s, const Wide &to, const Wide &x, RoundMode mode) { s.cast(to, x, mode); }
inline void logarithm(Steps &s, const Wide &to, const Wide &x) { s("vln", {operand(to), operand(x)}); }
inline void below(Steps &s, const Wide &to, const Wide &x, float factor) {  // 1 + exp(factor x)
  s.scalar("vmuls", to, x, factor), s("vexp", {operand(to), operand(to)}), s.scalar("vadds", to, to, 1);
}
inline void sigmoid(Steps &s, const Wide &to, const Wide &x) {
  const Wide one = s.temporary();
  below(s, to, x, -1), s.fill(one, 1), s.two("vdiv", to, one, to);
}
inline void silu(Steps &s, const Wide &to, const Wide &x) {
  const Wide under = s.temporary();
  below(s, under, x, -1), s.two("vdiv", to, x, under);
}
inline void tanh_of(Steps &s, const Wide &to, const Wide &x) {  // 1 - 2 / (1 + exp(2x)), of an argument that does not overflow
  const Wide two = s.temporary();
  s.scalar("vmins", to, x, 20), s.scalar("vmaxs", to, to, -20), below(s, to, to, 2), s.fill(two, -2), s.two("vdiv", to, two, to);
  s.scalar("vadds", to, to, 1);
}
inline void sign(Steps &s, const Wide &to, const Wide &x) {
  s.scalar("vmuls", to, x, 0x1p100f), s.scalar("vmuls", to, to, 0x1p100f), s.scalar("vmins", to, to, 1), s.scalar("vmaxs", to, to, -1);
}
// The rest of an argument behind a multiple of pi, in three parts of pi, and a polynomial with the multiple's sign.
inline void wave(Steps &s, const Wide &to, const Wide &x, float shift) {
  const Wide turns = s.temporary(), rest = s.temporary(), square = s.temporary();
  s.scalar("vmuls", turns, x, 0.31830987f), s.scalar("vadds", turns, turns, shift), s.cast(turns, turns, RoundMode::CAST_RINT);
  if (shift != 0) s.scalar("vadds", rest, turns, -shift);
  else s.scalar("vadds", rest, turns, 0);
  const Wide part = square;
  s.scalar("vmuls", part, rest, -3.140625f), s.two("vadd", to, x, part);
  s.scalar("vmuls", part, rest, -9.67025757e-4f), s.two("vadd", to, to, part);
  s.scalar("vmuls", part, rest, -6.2771141e-7f), s.two("vadd", rest, to, part);
  s.two("vmul", square, rest, rest), s.scalar("vmuls", to, square, 2.60831598e-6f);
  for (const float factor : {-1.98106911e-4f, 8.33307703e-3f, -1.66666597e-1f}) s.scalar("vadds", to, to, factor), s.two("vmul", to, to, square);
  s.scalar("vadds", to, to, 1), s.two("vmul", to, to, rest);
  s.scalar("vmuls", rest, turns, 0.5f), s.cast(rest, rest, RoundMode::CAST_FLOOR);  // 1 - 2 (turns - 2 floor(turns / 2))
  s.scalar("vmuls", rest, rest, 4), s.scalar("vmuls", turns, turns, -2), s.two("vadd", rest, rest, turns), s.scalar("vadds", rest, rest, 1);
  s.two("vmul", to, to, rest);
}
template <typename T, typename Run> void applied(const void *place, const char *name, const LocalTensor<T> &dst, const LocalTensor<T> &src,
                                                 const castsim::Local *room, long long count, Run run) {
  Steps steps(place, name, count, room);
  if constexpr (std::is_same_v<T, float>) {
    run(steps, dst, src);
  } else {
    const Wide wide = steps.temporary(), result = steps.temporary();
    steps.cast(wide, src, RoundMode::CAST_NONE), run(steps, result, wide), steps.cast(dst, result, RoundMode::CAST_RINT);
  }
}
}  // namespace castsim_calls
// With or without room for what is between, and a count.
#define CASTSIM_FUNCTION(NAME, ...)                                                                                               \
  template <typename T, bool... Options> CASTSIM_CALL void NAME(const LocalTensor<T> &dst, const LocalTensor<T> &src, const uint32_t count) { \
    castsim_calls::applied<T>(CASTSIM_HERE, #NAME, dst, src, nullptr, count, [](auto &s, auto &to, auto &x) { __VA_ARGS__; }); }  \
  template <typename T, bool... Options> CASTSIM_CALL void NAME(const LocalTensor<T> &dst, const LocalTensor<T> &src) {           \
    castsim_calls::applied<T>(CASTSIM_HERE, #NAME, dst, src, nullptr, src.count, [](auto &s, auto &to, auto &x) { __VA_ARGS__; }); } \
  template <typename T, bool... Options> CASTSIM_CALL void NAME(const LocalTensor<T> &dst, const LocalTensor<T> &src,             \
                                                                const LocalTensor<uint8_t> &room, const uint32_t count) {         \
    castsim_calls::applied<T>(CASTSIM_HERE, #NAME, dst, src, &room, count, [](auto &s, auto &to, auto &x) { __VA_ARGS__; }); }    \
  template <typename T, bool... Options> CASTSIM_CALL void NAME(const LocalTensor<T> &dst, const LocalTensor<T> &src,             \
                                                                const LocalTensor<uint8_t> &room) {                               \
    castsim_calls::applied<T>(CASTSIM_HERE, #NAME, dst, src, &room, src.count, [](auto &s, auto &to, auto &x) { __VA_ARGS__; }); }
CASTSIM_FUNCTION(Floor, castsim_calls::round_to(s, to, x, RoundMode::CAST_FLOOR))
CASTSIM_FUNCTION(Ceil, castsim_calls::round_to(s, to, x, RoundMode::CAST_CEIL))
CASTSIM_FUNCTION(Trunc, castsim_calls::round_to(s, to, x, RoundMode::CAST_TRUNC))
CASTSIM_FUNCTION(Round, castsim_calls::round_to(s, to, x, RoundMode::CAST_RINT))
CASTSIM_FUNCTION(Rint, castsim_calls::round_to(s, to, x, RoundMode::CAST_RINT))
CASTSIM_FUNCTION(Log, castsim_calls::logarithm(s, to, x))
CASTSIM_FUNCTION(Log2, castsim_calls::logarithm(s, to, x), s.scalar("vmuls", to, to, 1.442695041f))
CASTSIM_FUNCTION(Log10, castsim_calls::logarithm(s, to, x), s.scalar("vmuls", to, to, 0.4342944819f))
CASTSIM_FUNCTION(Sigmoid, castsim_calls::sigmoid(s, to, x))
CASTSIM_FUNCTION(Silu, castsim_calls::silu(s, to, x))
CASTSIM_FUNCTION(Tanh, castsim_calls::tanh_of(s, to, x))
CASTSIM_FUNCTION(Sign, castsim_calls::sign(s, to, x))
CASTSIM_FUNCTION(Sin, castsim_calls::wave(s, to, x, 0.0f))
CASTSIM_FUNCTION(Cos, castsim_calls::wave(s, to, x, 0.5f))

// Each row of `inner` elements, of which the first `n` count.
#define CASTSIM_ROW_SUMS(ROOM) template <typename T, auto... Options> CASTSIM_CALL void Sum(const LocalTensor<T> &dst, const LocalTensor<T> &src \
    CASTSIM_BARE ROOM, const SumParams &p) {                                                                                      \
  castsim::note(CASTSIM_HERE, "Sum runs by castsim's own sequence of instructions: its cycles are assumed");                      \
  for (uint32_t row = 0; row < p.outter; ++row) castsim_calls::sum_of<T>(CASTSIM_HERE, "Sum", dst[row], src[row * p.inner], castsim_calls::scratch<T>(), int32_t(p.n)); }
CASTSIM_ROW_SUMS(()) CASTSIM_ROW_SUMS((, const LocalTensor<uint8_t> &))

// Copies with a source stride of 0: of a row to all rows, or of an element that fills a block to its row.
namespace castsim_calls {
template <typename T, int Axis> void broadcast(const void *place, const char *name, LocalTensor<T> dst, LocalTensor<T> src,
                                               const castsim::Local *given, long long rows, long long cols) {
  const long long step = cols * (long long)sizeof(T) / 32;
  if (cols * sizeof(T) % 32 || step > 255) castsim::refuse(place, std::string(name) + " to rows of " + std::to_string(cols) +
      " elements; castsim has it for rows of 1 to 255 whole blocks of 32 bytes");
  Steps s(place, name, (rows + 7) / 8 * 64, given);
  if (Axis == 1) {
    const LocalTensor<T> blocks = s.temporary().template ReinterpretCast<T>();
    castsim::full_mask(place);
    castsim::instruction(place, name, "vbrcb", (rows + 7) / 8, {operand(blocks), operand(src, 1, 1)});
    castsim::barrier(place, PIPE_V);
    src = blocks;
  }
  for (long long col = 0; col < cols; col += castsim::LANES<T>)
    for (long long row = 0; row < rows; row += 255) {
      castsim::mask_lanes(place, (unsigned long long)std::min(castsim::LANES<T>, cols - col));
      castsim::instruction(place, name, "vcopy", std::min(255ll, rows - row), {operand(dst[uint32_t(row * cols + col)], 1, step),
          Axis == 1 ? operand(src[uint32_t(row * castsim::IN_BLOCK<T>)], 0, 1) : operand(src[uint32_t(col)], 1, 0)});
    }
  castsim::full_mask(place);
}
}  // namespace castsim_calls
#define CASTSIM_BROADCAST(NAME, ROOM, GIVEN) template <typename T, int32_t Dim, int32_t Axis, bool... Options> CASTSIM_CALL void NAME( \
    const LocalTensor<T> &dst, const LocalTensor<T> &src, const uint32_t to[Dim], const uint32_t from[Dim] CASTSIM_BARE ROOM) {      \
  if constexpr (Dim == 1) castsim_calls::broadcast<T, 1>(CASTSIM_HERE, #NAME, dst, src, GIVEN, 1, to[0]);                            \
  else castsim_calls::broadcast<T, Axis>(CASTSIM_HERE, #NAME, dst, src, GIVEN, to[0], to[1]); }
CASTSIM_BROADCAST(BroadCast, (), nullptr) CASTSIM_BROADCAST(BroadCast, (, const LocalTensor<uint8_t> &room), &room)
CASTSIM_BROADCAST(Broadcast, (), nullptr) CASTSIM_BROADCAST(Broadcast, (, const LocalTensor<uint8_t> &room), &room)
}  // namespace AscendC
