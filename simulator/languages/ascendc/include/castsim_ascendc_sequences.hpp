// Reductions, gathers, sorts and fills, many of which are sequences of instructions; and what castsim does not run.

namespace AscendC {
// ------------------------------------------------------------------------------------------------ reductions
namespace castsim_calls {
inline const char *const ORDERS[] = {"value_index", "index_value", "value", "index"};
template <typename T> void reduce(const void *place, const char *name, const char *mnemonic, const LocalTensor<T> &dst,
                                  const LocalTensor<T> &src, long long repeats, long long step = 8, long long block = 1,
                                  long long results = 1, const char *order = nullptr) {
  castsim::Words words{operand(dst, 1, results), operand(src, block, step)};
  if (order) words.push_back(castsim::attribute("order", order));
  castsim::instruction(place, name, mnemonic, repeats, words);
}
template <typename T> T read(const void *place, const LocalTensor<T> &tensor, long long number, bool recorded = true) {
  const unsigned long long code = castsim::value_at(place, tensor, castsim::Element<T>::name(),
                                                    tensor.address + number * (long long)sizeof(T), sizeof(T), recorded);
  T value;
  memcpy(static_cast<void *>(&value), &code, sizeof value);
  return value;
}
template <typename T> unsigned long long index_of(T value) {  // indices are integers of the element's width
  return castsim::code_of(value);
}
template <typename T> T index_as(unsigned long long number) {
  T value;
  memcpy(static_cast<void *>(&value), &number, sizeof value);
  return value;
}
template <typename T> struct Found { T value; unsigned long long index; };

// One value and its place of `count` elements: pairs of the repeats, then of their values under the mask 0101...
template <typename T> Found<T> extreme(const void *place, const char *name, const char *mnemonic, const LocalTensor<T> &src,
                                       const LocalTensor<T> &tmp, long long repeats, long long step, bool masked) {
  const long long lanes = castsim::LANES<T>, align = castsim::IN_BLOCK<T>;
  std::vector<LocalTensor<T>> passes{tmp};
  if (!masked) castsim::full_mask(place);
  for (long long first = 0; first < repeats; first += 255)
    reduce<T>(place, name, mnemonic, tmp[uint32_t(2 * first)], src[uint32_t(first * step * align)],
              std::min(255ll, repeats - first), step, 1, 1, ORDERS[0]);
  for (long long pairs = repeats; pairs > 1;) {
    const long long whole = 2 * pairs / lanes, rest = 2 * pairs % lanes, made = whole + (rest > 0);
    const LocalTensor<T> from = passes.back(), to = from[uint32_t((2 * pairs + align - 1) / align * align)];
    castsim::barrier(place, PIPE_V);
    constexpr unsigned long long VALUES = 0x5555555555555555ull;
    if (whole) {
      castsim::mask_words(place, lanes > 64 ? VALUES : 0, VALUES);
      reduce<T>(place, name, mnemonic, to, from, whole, 8, 1, 1, ORDERS[0]);
    }
    if (rest) {
      auto low = [](long long n) { return n >= 64 ? castsim::FULL : (1ull << n) - 1; };
      castsim::mask_words(place, rest > 64 ? VALUES & low(rest - 64) : 0, VALUES & low(rest));
      reduce<T>(place, name, mnemonic, to[uint32_t(2 * whole)], from[uint32_t(whole * lanes)], 1, 8, 1, 1, ORDERS[0]);
    }
    passes.push_back(to);
    pairs = made;
  }
  castsim::flag_now(place, HardEvent::V_S);
  const T value = read(place, passes.back(), 0);
  unsigned long long repeat = 0;  // of the pass, from the last to the first
  for (size_t pass = passes.size(); pass-- > 1;)
    repeat = (repeat * (unsigned long long)lanes + index_of(read(place, passes[pass], 2 * (long long)repeat + 1))) / 2;
  const unsigned long long lane = index_of(read(place, tmp, 2 * (long long)repeat + 1));
  return {value, repeat * (unsigned long long)(step * align) + lane};
}
template <typename T> void store_found(const void *place, const LocalTensor<T> &dst, Found<T> found, bool indexed) {
  dst.set(place, 0, found.value);
  if (indexed) dst.set(place, 1, index_as<T>(found.index));
  castsim::flag_now(place, HardEvent::S_V);
  castsim::flag_now(place, HardEvent::S_MTE3);
}
// A tail has a reduction of its own, and the two results another; the first place wins.
template <typename T> void extreme_of_count(const void *place, const char *name, const char *mnemonic, const LocalTensor<T> &dst,
                                            const LocalTensor<T> &src, const LocalTensor<T> &tmp, long long count, bool indexed) {
  if (count <= 0) castsim::refuse(place, std::string(name) + " of " + std::to_string(count) + " elements");
  if (castsim::A5)
    return castsim::instruction(place, name, mnemonic, 1,
                                {operand(dst), operand(src), operand(tmp), castsim::attribute("reduced", count), castsim::attribute("indexed", (long long)indexed)});
  const long long lanes = castsim::LANES<T>, whole = count / lanes, rest = count % lanes;
  Found<T> found{};
  if (whole) found = extreme<T>(place, name, mnemonic, src, tmp, whole, 8, false);
  if (rest) {
    castsim::mask_lanes(place, (unsigned long long)rest);
    const Found<T> tail = extreme<T>(place, name, mnemonic, src[uint32_t(whole * lanes)], tmp, 1, 8, true);
    if (whole) {
      tmp.set(place, 0, found.value), tmp.set(place, 1, tail.value);
      castsim::flag_now(place, HardEvent::S_V);
      castsim::mask_lanes(place, 2);
      const LocalTensor<T> both = tmp[uint32_t(castsim::IN_BLOCK<T>)];
      reduce<T>(place, name, mnemonic, both, tmp, 1, 8, 1, 1, ORDERS[0]);
      castsim::flag_now(place, HardEvent::V_S);
      const T value = read(place, both, 0);
      const bool second = index_of(read(place, both, 1)) == 1;
      found = {value, second ? tail.index + (unsigned long long)(whole * lanes) : found.index};
    } else {
      found = tail;
    }
  }
  castsim::full_mask(place);
  store_found(place, dst, found, indexed);
}
// Sums of the repeats, summed again until one is left.
template <typename T> void sums(const void *place, const LocalTensor<T> &dst, const LocalTensor<T> &src, const LocalTensor<T> &tmp,
                                long long repeats, long long step) {
  const long long lanes = castsim::LANES<T>;
  reduce<T>(place, "ReduceSum", "vcadd", repeats == 1 ? dst : tmp, src, repeats, step);
  for (long long left = repeats; left > 1;) {
    const long long whole = left / lanes, rest = left % lanes, made = whole + (rest > 0);
    const LocalTensor<T> to = made == 1 ? dst : tmp;
    castsim::barrier(place, PIPE_V);
    if (whole) castsim::full_mask(place), reduce<T>(place, "ReduceSum", "vcadd", to, tmp, whole);
    if (rest) {
      castsim::mask_lanes(place, (unsigned long long)rest);
      reduce<T>(place, "ReduceSum", "vcadd", to[uint32_t(whole)], tmp[uint32_t(whole * lanes)], 1);
    }
    left = made;
  }
}
}  // namespace castsim_calls

// One `vcadd` that accumulates, whose sum the scalar unit stores. castsim's vcadd writes a sum for every repeat, here to
// the library's scratch; they are added in their order in f32 (the chip's is not stated).
namespace castsim_calls {
template <typename T> void sum_of(const void *place, const char *name, const LocalTensor<T> &dst, const LocalTensor<T> &src,
                                  const LocalTensor<T> &tmp, int32_t count) {
  if (count <= 0) castsim::refuse(place, std::string(name) + " of " + std::to_string(count) + " elements");
  if (castsim::A5)
    return castsim::instruction(place, name, "vcadd", 1,
                                {castsim::operand(dst), castsim::operand(src), castsim::operand(tmp), castsim::attribute("reduced", (long long)count)});
  const LocalTensor<T> own = castsim_calls::scratch<T>();
  castsim::counted(place, count, [&] { castsim_calls::reduce<T>(place, name, "vcadd", own, src, 1); });
  castsim::flag_now(place, castsim::HardEvent::V_S);
  float sum = 0;
  for (long long first = 0, number = 0; first < count; first += castsim::LANES<T>, ++number)
    sum = first ? sum + float(castsim_calls::read(place, own, number, false)) : float(castsim_calls::read(place, own, number));
  dst.set(place, 0, T(sum));
  castsim::flag_now(place, castsim::HardEvent::S_V);
  castsim::flag_now(place, castsim::HardEvent::S_MTE3);
}
}  // namespace castsim_calls
template <typename T, bool isSetMask = true> CASTSIM_CALL void ReduceSum(const LocalTensor<T> &dst, const LocalTensor<T> &src,
                                                                        const LocalTensor<T> &tmp, const int32_t count) {
  castsim_calls::sum_of<T>(CASTSIM_HERE, "ReduceSum", dst, src, tmp, count);
}
#define CASTSIM_WITH_MASK(MASK) template <typename T, bool isSetMask = true> CASTSIM_CALL void ReduceSum(                 \
    const LocalTensor<T> &dst, const LocalTensor<T> &src, const LocalTensor<T> &tmp, MASK, const int32_t repeats, const int32_t step) { \
  const void *place = CASTSIM_HERE;                                                                                      \
  castsim::Mask(mask, isSetMask).set(place);                                                                             \
  castsim_calls::sums<T>(place, dst, src, tmp, repeats, step); }
CASTSIM_WITH_MASK(const int32_t mask) CASTSIM_WITH_MASK(const uint64_t mask[])
#undef CASTSIM_WITH_MASK
#define CASTSIM_EXTREME_MASKED(NAME, MNEMONIC, MASK) template <typename T, bool isSetMask = true> CASTSIM_CALL void NAME(const LocalTensor<T> &dst,          \
    const LocalTensor<T> &src, const LocalTensor<T> &tmp, MASK, const int32_t repeats, const int32_t step, bool indexed = false) { \
  const void *place = CASTSIM_HERE;                                                                                      \
  castsim::Mask(mask, isSetMask).set(place);                                                                             \
  castsim_calls::store_found<T>(place, dst, castsim_calls::extreme<T>(place, #NAME, MNEMONIC, src, tmp, repeats, step, true), indexed); }
#define CASTSIM_EXTREME(NAME, MNEMONIC)                                                                                  \
  template <typename T, bool isSetMask = true> CASTSIM_CALL void NAME(const LocalTensor<T> &dst, const LocalTensor<T> &src, const LocalTensor<T> &tmp,      \
                                   const int32_t count, bool indexed = false) {                                          \
    castsim_calls::extreme_of_count<T>(CASTSIM_HERE, #NAME, MNEMONIC, dst, src, tmp, count, indexed); }                   \
  CASTSIM_EXTREME_MASKED(NAME, MNEMONIC, const int32_t mask) CASTSIM_EXTREME_MASKED(NAME, MNEMONIC, const uint64_t mask[])
CASTSIM_EXTREME(ReduceMax, "vcmax") CASTSIM_EXTREME(ReduceMin, "vcmin")
CASTSIM_NOT_RUN(GetReduceMaxMinCount, "reads the register of the last vcmax, which is not modelled")

// Strides of destinations count results; blocks have eight.
#define CASTSIM_WHOLE(NAME, MNEMONIC, MASK, ORDER, WORD) template <typename T, bool isSetMask = true> CASTSIM_CALL void NAME(const LocalTensor<T> &dst,      \
    const LocalTensor<T> &src, MASK, const int32_t repeats, const int32_t to, const int32_t block, const int32_t step CASTSIM_BARE ORDER) { \
  castsim::Mask(mask, isSetMask).set(CASTSIM_HERE);                                                                      \
  castsim_calls::reduce<T>(CASTSIM_HERE, #NAME, MNEMONIC, dst, src, repeats, step, block, to, WORD); }
#define CASTSIM_WHOLE_BOTH(NAME, MNEMONIC, ORDER, WORD) \
  CASTSIM_WHOLE(NAME, MNEMONIC, const int32_t mask, ORDER, WORD) CASTSIM_WHOLE(NAME, MNEMONIC, const uint64_t mask[], ORDER, WORD)
#define CASTSIM_ORDER (, ReduceOrder order = ReduceOrder::ORDER_VALUE_INDEX)
CASTSIM_WHOLE_BOTH(WholeReduceSum, "vcadd", (), nullptr)
CASTSIM_WHOLE_BOTH(WholeReduceMax, "vcmax", CASTSIM_ORDER, castsim_calls::ORDERS[int(order)])
CASTSIM_WHOLE_BOTH(WholeReduceMin, "vcmin", CASTSIM_ORDER, castsim_calls::ORDERS[int(order)])
#define CASTSIM_PARTS_OF(NAME, MNEMONIC, MASK) template <typename T, bool isSetMask = true> CASTSIM_CALL void NAME(const LocalTensor<T> &dst, const LocalTensor<T> &src, \
    const int32_t repeats, MASK, const int32_t to, const int32_t block, const int32_t step) {                            \
  castsim::Mask(mask, isSetMask).set(CASTSIM_HERE);                                                                      \
  castsim_calls::reduce<T>(CASTSIM_HERE, #NAME, MNEMONIC, dst, src, repeats, step, block, to); }
#define CASTSIM_PARTS(NAME, MNEMONIC) CASTSIM_PARTS_OF(NAME, MNEMONIC, const int32_t mask) CASTSIM_PARTS_OF(NAME, MNEMONIC, const uint64_t mask[])
CASTSIM_PARTS(BlockReduceSum, "vcgadd") CASTSIM_PARTS(BlockReduceMax, "vcgmax") CASTSIM_PARTS(BlockReduceMin, "vcgmin")
CASTSIM_PARTS(PairReduceSum, "vcpadd")
template <typename T, bool isSetMask = true> CASTSIM_CALL void RepeatReduceSum(const LocalTensor<T> &dst, const LocalTensor<T> &src,
    const int32_t repeats, const int32_t mask, const int32_t, const int32_t block, const int32_t to, const int32_t step) {
  castsim::Mask((unsigned long long)mask, isSetMask).set(CASTSIM_HERE);
  castsim_calls::reduce<T>(CASTSIM_HERE, "RepeatReduceSum", "vcadd", dst, src, repeats, step, block, to);
}

// ------------------------------------------------------------------------------------------------ rearranging
// From buffer to buffer, on the vector unit.
namespace castsim_calls {
inline void within(const void *place, const char *element, const castsim::Local &dst, const castsim::Local &src, const DataCopyParams &p) {
  castsim::settle_writes();
  castsim::say("m", castsim::trail_of(place), element, castsim::joined("u", dst.address, dst.low, dst.high),
               castsim::joined("u", src.address, src.low, src.high), p.blockCount, p.blockLen, p.srcStride, p.dstStride);
  castsim::end();
  castsim::windows.clear();
}
}  // namespace castsim_calls
template <typename T> CASTSIM_CALL void DataCopy(const LocalTensor<T> &dst, const LocalTensor<T> &src, const DataCopyParams &p) {
  castsim_calls::within(CASTSIM_HERE, castsim::Element<T>::name(), dst, src, p);
}
template <typename T> CASTSIM_CALL void DataCopy(const LocalTensor<T> &dst, const LocalTensor<T> &src, uint32_t elements) {
  const long long blocks = castsim::whole_blocks(CASTSIM_HERE, LocalTensor<T>::bytes(elements)) / 32;
  castsim_calls::within(CASTSIM_HERE, castsim::Element<T>::name(), dst, src, {1, uint16_t(blocks), 0, 0});
}
template <typename T> CASTSIM_CALL void Brcb(const LocalTensor<T> &dst, const LocalTensor<T> &src, const uint8_t repeats, const BrcbRepeatParams &p) {
  castsim::full_mask(CASTSIM_HERE);
  castsim::instruction(CASTSIM_HERE, "Brcb", "vbrcb", repeats, {castsim::operand(dst, p.dstBlkStride, p.dstRepStride), castsim::operand(src, 1, 1)});
}
namespace castsim_calls {
// The bytes that a gather may read: only their values tell offsets.
template <typename T> void add_reach(castsim::Words &words, const LocalTensor<T> &from) {
  const long long end = from.count ? std::min(from.high, from.address + from.bytes(from.count)) : from.high;
  if (!castsim::A5 && end > from.address) words.push_back(castsim::attribute("reach", end - from.address));
}
template <typename T> void gather(const void *place, const LocalTensor<T> &dst, const LocalTensor<T> &src,
                                  const LocalTensor<uint32_t> &offsets, uint32_t base, long long repeats, long long step) {
  LocalTensor<T> from = src;
  from.address += base;
  castsim::Words words{operand(dst, 1, step), operand(offsets, 1, 8), operand(from)};
  add_reach(words, from);
  castsim::instruction(place, "Gather", "vgather", repeats, words);
}
}  // namespace castsim_calls
// Offsets are bytes. Head repeats, then the tail alone.
template <typename T> CASTSIM_CALL void Gather(const LocalTensor<T> &dst, const LocalTensor<T> &src, const LocalTensor<uint32_t> &offsets,
                                              const uint32_t base, const uint32_t count) {
  const void *place = CASTSIM_HERE;
  const long long lanes = castsim::A5 ? castsim::LANES<T> : castsim::LANES<uint32_t>, whole = count / lanes;
  if (castsim::A5)
    return castsim::counted(place, count, [&] { castsim_calls::gather<T>(place, dst, src, offsets, base, 1, 8); });
  const long long step = lanes * (long long)sizeof(T) / 32;
  castsim::full_mask(place);
  for (long long first = 0; first < whole; first += 255)
    castsim_calls::gather<T>(place, dst[uint32_t(first * lanes)], src, offsets[uint32_t(first * lanes)], base, std::min(255ll, whole - first), step);
  if (count % lanes) {
    castsim::mask_lanes(place, (unsigned long long)(count % lanes));
    castsim_calls::gather<T>(place, dst[uint32_t(whole * lanes)], src, offsets[uint32_t(whole * lanes)], base, 1, step);
    castsim::full_mask(place);
  }
}
#define CASTSIM_GATHER(MASK) template <typename T> CASTSIM_CALL void Gather(const LocalTensor<T> &dst, const LocalTensor<T> &src, \
    const LocalTensor<uint32_t> &offsets, const uint32_t base, MASK, const uint8_t repeats, const uint16_t step) {              \
  castsim::Mask(mask, true).set(CASTSIM_HERE);                                                                                  \
  castsim_calls::gather<T>(CASTSIM_HERE, dst, src, offsets, base, repeats, step); }
CASTSIM_GATHER(const uint64_t mask) CASTSIM_GATHER(const uint64_t mask[])
template <typename T> CASTSIM_CALL void Gatherb(const LocalTensor<T> &dst, const LocalTensor<T> &src, const LocalTensor<uint32_t> &offsets,
                                               const uint8_t repeats, const GatherRepeatParams &p) {
  castsim::full_mask(CASTSIM_HERE);
  castsim::Words words{castsim::operand(dst, p.dstBlkStride, p.dstRepStride), castsim::operand(offsets, 1, 1), castsim::operand(src)};
  castsim_calls::add_reach(words, src);
  castsim::instruction(CASTSIM_HERE, "Gatherb", "vgatherb", repeats, words);
}

namespace castsim_calls {
template <typename T, typename Kept> void gather_mask(const void *place, const LocalTensor<T> &dst, const LocalTensor<T> &src,
    bool counted, uint32_t mask, const GatherMaskParams &p, const castsim::Words &more, uint64_t &kept, Kept kept_of) {
  if (counted) castsim::control(place, "count"), castsim::control(place, "lanes", mask);
  castsim::Words words{operand(dst), operand(src, p.src0BlockStride, p.src0RepeatStride)};
  words.insert(words.end(), more.begin(), more.end());
  castsim::instruction(place, "GatherMask", "vreducev2", p.repeatTimes, words);
  if (counted) castsim::control(place, "norm");
  const long long each = counted ? mask : castsim::LANES<T>;
  kept = 0;
  for (long long repeat = 0; repeat < p.repeatTimes; ++repeat)
    for (long long element = 0; element < each; ++element) kept += kept_of(repeat, element);
}
}  // namespace castsim_calls
template <typename T> CASTSIM_CALL void GatherMask(const LocalTensor<T> &dst, const LocalTensor<T> &src, const uint8_t pattern,
    const bool counted, const uint32_t mask, const GatherMaskParams &p, uint64_t &kept) {
  static const uint8_t PATTERNS[] = {0, 5, 10, 1, 2, 4, 8, 15};
  if (pattern < 1 || pattern > 7) castsim::refuse(CASTSIM_HERE, "GatherMask with pattern " + std::to_string(pattern) + "; patterns are 1 to 7");
  castsim_calls::gather_mask<T>(CASTSIM_HERE, dst, src, counted, mask, p, {castsim::attribute("pattern", (long long)pattern)}, kept,
                                [&](long long, long long element) { return PATTERNS[pattern] >> element % 4 & 1; });
}
template <typename T, typename U> CASTSIM_CALL void GatherMask(const LocalTensor<T> &dst, const LocalTensor<T> &src,
    const LocalTensor<U> &pattern, const bool counted, const uint32_t mask, const GatherMaskParams &p, uint64_t &kept) {
  const void *place = CASTSIM_HERE;
  std::map<long long, unsigned> read;  // before the destination may overwrite them
  const long long each = counted ? mask : castsim::LANES<T>, step = p.src1RepeatStride * 32ll;
  for (long long repeat = 0; repeat < p.repeatTimes; ++repeat)
    for (long long byte = 0; byte < (each + 7) / 8; ++byte)
      read[repeat * step + byte] = unsigned(castsim::value_at(place, pattern, "u8", pattern.address + repeat * step + byte, 1, false));
  castsim_calls::gather_mask<T>(place, dst, src, counted, mask, p, {castsim::operand(pattern, "u8", 1, p.src1RepeatStride)}, kept,
                                [&](long long repeat, long long element) { return read[repeat * step + element / 8] >> element % 8 & 1; });
}

// The first block by the scalar unit, then block by block, then repeat by repeat.
namespace castsim_calls {
template <typename T> void create_index(const void *place, const LocalTensor<T> &dst, T first, T more, long long count) {
  if (castsim::A5 && more == T(1))
    return castsim::counted(place, count, [&] {
      castsim::instruction(place, "CreateVecIndex", "vci", 1, {operand(dst), castsim::scalar<T>(first)}); });
  const long long block = castsim::IN_BLOCK<T>, lanes = castsim::LANES<T>;
  auto add = [&](long long to, long long from, long long step) {
    castsim::mask_lanes(place, (unsigned long long)std::min(step, count - to));
    castsim::instruction(place, "CreateVecIndex", "vadds", 1,
                         {operand(dst[uint32_t(to)]), operand(dst[uint32_t(from)]), castsim::scalar<T>(T(more * T(step)))});
    castsim::barrier(place, PIPE_V);
  };
  for (long long number = 0; number < std::min(block, count); ++number) dst.set(place, uint32_t(number), T(first + more * T(number)));
  castsim::flag_now(place, HardEvent::S_V);
  for (long long to = block; to < std::min(lanes, count); to += block) add(to, to - block, block);
  for (long long to = lanes; to < count; to += lanes) add(to, to - lanes, lanes);
  castsim::full_mask(place);
}
}  // namespace castsim_calls
template <typename T> CASTSIM_CALL void CreateVecIndex(const LocalTensor<T> &dst, const std::type_identity_t<T> &first, uint32_t count) {
  castsim_calls::create_index<T>(CASTSIM_HERE, dst, first, T(1), count);
}
template <typename T> CASTSIM_CALL void ArithProgression(const LocalTensor<T> &dst, const std::type_identity_t<T> first,
                                                         const std::type_identity_t<T> more, const int32_t count) {
  castsim_calls::create_index<T>(CASTSIM_HERE, dst, first, more, count);
}
template <typename T, typename M> CASTSIM_CALL void CreateVecIndex(const LocalTensor<T> &, const std::type_identity_t<T> &, M, uint8_t, uint16_t, uint8_t) {
  castsim::refuse(CASTSIM_HERE, "CreateVecIndex with a mask is not modelled; the form with a count is");
}
// Pairs are eight bytes: an element, and its number as a word.
template <typename T> CASTSIM_CALL void Sort32(const LocalTensor<T> &dst, const LocalTensor<T> &src, const LocalTensor<uint32_t> &index, const int32_t repeats) {
  castsim::instruction(CASTSIM_HERE, "Sort32", "vbitsort", repeats, {castsim::operand(dst), castsim::operand(src), castsim::operand(index)});
}
template <typename T> void Concat(LocalTensor<T> &concat, const LocalTensor<T> &src, const LocalTensor<T> &, const int32_t) { concat = src; }
template <typename T> CASTSIM_CALL void Extract(const LocalTensor<T> &values, const LocalTensor<uint32_t> &index, const LocalTensor<T> &sorted, const int32_t repeats) {
  uint64_t kept = 0;
  const castsim::Words first{castsim::attribute("pattern", sizeof(T) == 2 ? 3ll : 1ll)}, second{castsim::attribute("pattern", 2ll)};
  auto none = [](long long, long long) { return 0; };
  castsim_calls::gather_mask<T>(CASTSIM_HERE, values, sorted, false, 0, {1, uint16_t(repeats), 8, 0}, first, kept, none);
  castsim_calls::gather_mask<uint32_t>(CASTSIM_HERE, index, sorted.template ReinterpretCast<uint32_t>(), false, 0,
                                       {1, uint16_t(repeats), 8, 0}, second, kept, none);
}
struct MrgSort4Info {
  uint16_t elementLengths[4] = {0};
  bool ifExhaustedSuspension = false;
  uint16_t validBit = 0;
  uint8_t repeatTimes = 1;
  MrgSort4Info() = default;
  MrgSort4Info(const uint16_t lengths[4], bool stops, uint16_t valid, uint16_t repeats)
      : ifExhaustedSuspension(stops), validBit(valid), repeatTimes(uint8_t(repeats)) { std::copy_n(lengths, 4, elementLengths); }
};
template <typename T> struct MrgSortSrcList {
  LocalTensor<T> src1, src2, src3, src4;
  MrgSortSrcList() = default;
  MrgSortSrcList(const LocalTensor<T> &a, const LocalTensor<T> &b, const LocalTensor<T> &c, const LocalTensor<T> &d)
      : src1(a), src2(b), src3(c), src4(d) {}
};
namespace castsim_calls {
inline uint16_t merged[4];  // of each list, by the last merge that stopped
template <typename T> void merge(const void *place, const char *name, const LocalTensor<T> &dst, const std::vector<LocalTensor<T>> &lists,
                                 const std::vector<long long> &lengths, long long repeats, bool stops) {
  castsim::Words words{operand(dst)};
  for (const auto &list : lists) words.push_back(operand(list));
  for (long long length : lengths) words.push_back(castsim::scalar<uint32_t>(uint32_t(length)));
  if (stops) words.push_back(castsim::attribute("exhausted", "stop"));
  castsim::instruction(place, name, "vmrgsort4", repeats, words);
}
template <typename T> void merge_lists(const void *place, const LocalTensor<T> &dst, const MrgSortSrcList<T> &given, const uint16_t lengths[],
                                       bool stops, uint16_t valid, long long repeats) {
  if (valid != 3 && valid != 7 && valid != 15)
    castsim::refuse(place, "MrgSort with validBit " + std::to_string(valid) + "; it is 3, 7 or 15: the first two, three or four lists");
  std::vector<LocalTensor<T>> lists{given.src1, given.src2, given.src3, given.src4};
  lists.resize(size_t(std::popcount(valid)));
  const std::vector<long long> counts(lengths, lengths + lists.size());
  std::fill_n(merged, 4, uint16_t(0));
  for (size_t first = 0; stops;) {  // the greatest of what is left, until a list ends
    float top = 0;
    size_t from = lists.size();
    for (size_t list = 0; list < lists.size(); ++list) {
      const float own = float(read(place, lists[list], merged[list] * 8 / (long long)sizeof(T), false));
      if (from == lists.size() || own > top) top = own, from = list;
    }
    if (++merged[from] == counts[from]) break;
    first = from;
  }
  merge<T>(place, "MrgSort", dst, lists, counts, repeats, stops);
}
}  // namespace castsim_calls
template <typename T> CASTSIM_CALL void MrgSort(const LocalTensor<T> &dst, const MrgSortSrcList<T> &lists, const MrgSort4Info &p) {
  castsim_calls::merge_lists<T>(CASTSIM_HERE, dst, lists, p.elementLengths, p.ifExhaustedSuspension, p.validBit, p.repeatTimes);
}
template <typename T, bool Stops = false> CASTSIM_CALL void MrgSort(const LocalTensor<T> &dst, const MrgSortSrcList<T> &lists,
    const uint16_t lengths[4], uint32_t sorted[4], uint16_t valid, const int32_t repeats) {
  castsim_calls::merge_lists<T>(CASTSIM_HERE, dst, lists, lengths, Stops, valid, repeats);
  std::copy_n(castsim_calls::merged, 4, sorted);
}
CASTSIM_CALL inline void GetMrgSortResult(uint16_t &a, uint16_t &b, uint16_t &c, uint16_t &d) {
  a = castsim_calls::merged[0], b = castsim_calls::merged[1], c = castsim_calls::merged[2], d = castsim_calls::merged[3];
}
// Groups of 32, then merges of four lists at a time between two tensors; what is left over is merged apart or copied.
template <typename T, bool Whole> CASTSIM_CALL void Sort(const LocalTensor<T> &dst, const LocalTensor<T> &concat, const LocalTensor<uint32_t> &index,
                                                        const LocalTensor<T> &tmp, const int32_t repeats) {
  const void *place = CASTSIM_HERE;
  const long long words = 8 / (long long)sizeof(T), all = 32ll * repeats;
  LocalTensor<T> from = dst, to = tmp;
  castsim::instruction(place, "Sort", "vbitsort", repeats, {castsim::operand(dst), castsim::operand(concat), castsim::operand(index)});
  for (long long length = 32; Whole && length < all; length *= 4) {
    castsim::barrier(place, PIPE_V);
    long long done = 0;
    auto next = [&](long long count, long long each, long long last, long long times) {
      std::vector<LocalTensor<T>> lists;
      std::vector<long long> lengths;
      for (long long list = 0; list < count; ++list) {
        lists.push_back(from[uint32_t((done + list * each) * words)]);
        lengths.push_back(list < count - 1 ? each : last);
      }
      if (count == 1) DataCopy(to[uint32_t(done * words)], from[uint32_t(done * words)], uint32_t(last * words));
      else castsim_calls::merge<T>(place, "Sort", to[uint32_t(done * words)], lists, lengths, times, false);
      done += ((count - 1) * each + last) * times;
    };
    if (const long long whole = all / (4 * length)) next(4, length, length, whole);
    if (const long long rest = all - done) {
      const long long count = (rest + length - 1) / length;
      next(count, length, rest - (count - 1) * length, 1);
    }
    std::swap(from, to);
  }
  if (from.address != dst.address) {
    castsim::barrier(place, PIPE_V);
    DataCopy(dst, from, uint32_t(all * words));
  }
}

// Rows of 16 blocks as columns.
struct TransDataTo5HDParams {
  bool dstHighHalf = false, srcHighHalf = false;
  uint8_t repeatTimes = 1;
  uint16_t dstRepStride = 0, srcRepStride = 0;
  TransDataTo5HDParams() = default;
  TransDataTo5HDParams(bool to_high, bool from_high, uint8_t repeats, uint16_t to, uint16_t from)
      : dstHighHalf(to_high), srcHighHalf(from_high), repeatTimes(repeats), dstRepStride(to), srcRepStride(from) {}
};
namespace castsim_calls {
template <typename T, typename At> void transpose(const void *place, const char *name, At to, At from, const TransDataTo5HDParams &p) {
  static const char *const HALVES[] = {"low_low", "low_high", "high_low", "high_high"};
  castsim::Words words;
  for (int row = 0; row < 16; ++row) words.push_back(operand(to(row), 1, p.dstRepStride));
  for (int row = 0; row < 16; ++row) words.push_back(operand(from(row), 1, p.srcRepStride));
  if (const int halves = 2 * p.dstHighHalf + p.srcHighHalf; halves && sizeof(T) == 1) words.push_back(castsim::attribute("halves", HALVES[halves]));
  castsim::instruction(place, name, "scatter_vnchwconv", p.repeatTimes, words);
}
}  // namespace castsim_calls
template <typename T> CASTSIM_CALL void TransDataTo5HD(const LocalTensor<T> (&dst)[16], const LocalTensor<T> (&src)[16], const TransDataTo5HDParams &p) {
  using At = std::function<LocalTensor<T>(int)>;
  castsim_calls::transpose<T, At>(CASTSIM_HERE, "TransDataTo5HD", [&](int row) { return dst[row]; }, [&](int row) { return src[row]; }, p);
}
template <typename T> CASTSIM_CALL void TransDataTo5HD(uint64_t (&dst)[16], uint64_t (&src)[16], const TransDataTo5HDParams &p) {
  using At = std::function<LocalTensor<T>(int)>;
  auto at = [](uint64_t byte) { return LocalTensor<T>(uint32_t(byte)); };
  castsim_calls::transpose<T, At>(CASTSIM_HERE, "TransDataTo5HD", [&](int row) { return at(dst[row]); }, [&](int row) { return at(src[row]); }, p);
}
// 16 x 16 of 16 bits; its instruction has no documented cycles, so it is that of TransDataTo5HD on adjacent blocks.
template <typename T> CASTSIM_CALL void Transpose(const LocalTensor<T> &dst, const LocalTensor<T> &src) {
  static_assert(sizeof(T) == 2, "Transpose works on 16 x 16 elements of 16 bits");
  using At = std::function<LocalTensor<T>(int)>;
  castsim_calls::transpose<T, At>(CASTSIM_HERE, "Transpose", [&](int row) { return dst[uint32_t(16 * row)]; },
                                  [&](int row) { return src[uint32_t(16 * row)]; }, {});
}
namespace castsim_calls {
template <typename T> void fill_memory(const void *place, const GlobalTensor<T> &global, uint32_t size, T value) {
  const long long start = GetTPipePtr()->castsim_free(), most = (castsim::SCRATCH - start) / 32 * 32 / (long long)sizeof(T);
  if (most <= 0) castsim::refuse(place, "InitOutput has no room: InitBuffer has given all bytes away");
  LocalTensor<T> own;
  own.address = own.low = start, own.high = castsim::SCRATCH;
  const long long filled = std::min<long long>(most, size);
  castsim::counted(place, filled, [&] {
    castsim::instruction(place, "InitOutput", "vector_dup", 1, {castsim::operand(own), castsim::scalar<T>(value)}); });
  castsim::flag_now(place, HardEvent::V_MTE3);
  for (long long first = 0; first < (long long)size; first += filled) {
    const long long bytes = std::min<long long>(filled, size - first) * (long long)sizeof(T);
    castsim::transfer(place, false, global[uint64_t(first)].address, castsim::Element<T>::name(), own, {1, bytes, bytes, bytes});
  }
  castsim::barrier(place, PIPE_MTE3);
  castsim::flag_now(place, HardEvent::MTE3_V);  // the same room may be filled again
}
}  // namespace castsim_calls
#define CASTSIM_FILL(NAME) template <typename T> CASTSIM_CALL void NAME(const GlobalTensor<T> &global, const uint64_t size, \
    const std::type_identity_t<T> value = T(0)) { castsim_calls::fill_memory<T>(CASTSIM_HERE, global, uint32_t(size), value); }
CASTSIM_FILL(InitOutput) CASTSIM_FILL(InitGlobalMemory) CASTSIM_FILL(Fill)
// ------------------------------------------------------------------------------------------------ not run
#define CASTSIM_HIGH(NAME) CASTSIM_NOT_RUN(NAME, "is a high-level function of the library; castsim runs its basic calls")
CASTSIM_EACH(CASTSIM_HIGH, Mean, Power, Xor, SoftMax, SimpleSoftMax,
             SoftmaxFlash, SoftmaxFlashV2, Erf, Gelu, FasterGelu, FasterGeluV2, SwiGLU, Swish,
             LayerNorm, RmsNorm, Normalize, WelfordUpdate, WelfordFinalize, Pad, UnPad, CumSum,
             TopK, AscendQuant, AscendDequant, AscendAntiQuant, Quant, Clamp, ClampMax, ClampMin, Frac, Hypot, Lgamma,
             Digamma, Fmod, Reduce, ReduceProd, ReduceAny, ReduceAll, Where, Arange, GroupNorm, BatchNorm, DeepNorm, ConfusionTranspose)
#define CASTSIM_LACKING(NAME) CASTSIM_NOT_RUN(NAME, "is not modelled")
CASTSIM_EACH(CASTSIM_LACKING, MrgSort4, RpSort16, Scatter, CastDeq, CastDequant, Mull,
             Subs, Divs, Ands, Ors, ProposalConcat, ProposalExtract)
#define CASTSIM_CUBE_CALL(NAME) CASTSIM_NOT_RUN(NAME, "is of the cube unit; castsim runs vector kernels")
CASTSIM_EACH(CASTSIM_CUBE_CALL, Mmad, LoadData, LoadDataWithTranspose, Fixpipe, Gemm, BroadCastVecToMM, Conv2D, SetFixPipeConfig)
#define CASTSIM_CORES(NAME) CASTSIM_REFUSED(NAME, "waits for or signals another core; castsim runs a single vector core")
CASTSIM_EACH(CASTSIM_CORES, CrossCoreSetFlag, CrossCoreWaitFlag, IBSet, IBWait, NotifyNextBlock, WaitPreBlock, InitDetermineComputeWorkspace)
}  // namespace AscendC
