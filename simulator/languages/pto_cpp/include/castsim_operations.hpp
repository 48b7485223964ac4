// The operations on tiles, inside namespace pto: each waits for its events, is sent to castsim with its operands in
// their order, and returns a token. Which operands an operation has is in castsim's own table
// (castsim/isa/pto/vector_operations.py); what it lacks is refused there by name. Each has the library's name for its
// body too, with _IMPL.

namespace castsim_calls {
template <int Which, typename... T> struct ElementOf;  // of the tile of that number, else of the last
template <int Which, typename T> struct ElementOf<Which, T> { using Type = typename T::DType; };
template <int Which, typename T, typename... More> struct ElementOf<Which, T, More...> {
  using Type = typename std::conditional_t<Which == 0, ElementOf<0, T>, ElementOf<Which - 1, More...>>::Type;
};
template <typename... T> struct Tiles {};
template <typename Found, typename... A> struct Kept { using Type = Found; };
template <typename... T, typename A, typename... More>
struct Kept<Tiles<T...>, A, More...>
    : Kept<std::conditional_t<AnyTile<A>, Tiles<T..., A>, Tiles<T...>>, More...> {};
template <int Which, typename T> struct ElementAmong;
template <int Which, typename... T> struct ElementAmong<Which, Tiles<T...>> : ElementOf<Which, T...> {};

// What a number of a call becomes: of the element type of a tile by its number, or one of these.
constexpr int OF_RESULT = 0, OF_SOURCE = 1, FLOAT = -1, LENGTH = -2, PLACE = -3;
inline const char *const ROUNDINGS[] = {"NONE", "RINT", "ROUND", "FLOOR", "CEIL", "TRUNC", "ODD"};

template <int Number, typename Among, typename V> std::string number(V value) {
  if constexpr (Number == PLACE) return castsim::index((long long)value);
  else if constexpr (Number == LENGTH) return castsim::scalar<int32_t>(int32_t(value));
  else if constexpr (Number == FLOAT) return castsim::scalar<float>(float(value));
  else {
    using E = typename ElementAmong<Number, Among>::Type;
    return castsim::scalar<E>(static_cast<E>(value));
  }
}

template <int Number = OF_SOURCE, typename... A>
RecordEvent issue(const void *place, pipe_t pipe, const char *name, const castsim::Words &words, A &...given) {
  using Among = typename Kept<Tiles<>, std::remove_cv_t<A>...>::Type;
  castsim::Words sent;
  bool pointed = false;
  [[maybe_unused]] auto one = [&](auto &operand) {
    using O = std::remove_cvref_t<decltype(operand)>;
    if (sent.size() == 1) sent.push_back("|");
    if constexpr (Waited<O>) castsim_events::wait_for(place, pipe, operand);
    else if constexpr (AnyTile<O>) sent.push_back(castsim::given(operand));
    else if constexpr (AnyGlobal<O>) sent.push_back(castsim::given(place, operand));
    else if constexpr (std::is_pointer_v<O>) {
      if (!pointed) sent.push_back("&");
      pointed = true;
      sent.push_back(castsim::given(*operand));
    } else if constexpr (std::is_same_v<O, CmpMode>) sent.push_back(castsim::attribute("cmpMode", (long long)operand));
    else if constexpr (std::is_same_v<O, RoundMode>) sent.push_back(castsim::attribute("rmode", ROUNDINGS[int(operand)]));
    else if constexpr (std::is_same_v<O, SaturationMode>)
      sent.push_back(castsim::attribute("sat", operand == SaturationMode::ON ? "ON" : "OFF"));
    else if constexpr (std::is_same_v<O, bool>)
      sent.push_back(castsim::attribute("isBinary", operand ? "true" : "false"));
    else sent.push_back(number<Number, Among>(operand));
  };
  (one(given), ...);
  if (sent.empty()) castsim::refuse(place, name + std::string(" without operands"));
  sent.insert(sent.end(), words.begin(), words.end());
  std::string mnemonic = name;
  if (mnemonic.ends_with("_IMPL")) mnemonic.resize(mnemonic.size() - 5);
  for (char &letter : mnemonic) letter = char(tolower(letter));
  castsim::operation(place, mnemonic, sent);
  return {pipe};
}

// Of an operation with a choice of algorithms castsim models the default. How a function is arranged inside, and numbers
// and truth values, change nothing here; a mode that castsim would have to follow is refused.
template <auto Word> void check_choice(const void *place, const std::string &name) {
  if constexpr (requires { decltype(Word)::HIGH_PRECISION; }) {
    if (int(Word)) castsim::refuse(place, name + " is modelled only with the default algorithm");
  } else if constexpr (std::is_enum_v<decltype(Word)> && !std::is_same_v<decltype(Word), VFImplKind>) {
    castsim::refuse(place, name + " with a mode as template argument is not modelled");
  }
}

// What castsim does not model is sent with its tiles alone.
template <typename... A> RecordEvent issue_tiles(const void *place, const char *name, A &...given) {
  std::string operands;
  auto tuple = std::tuple_cat([](auto &operand) {
    if constexpr (AnyTile<std::remove_cvref_t<decltype(operand)>> || AnyGlobal<std::remove_cvref_t<decltype(operand)>> ||
                  Waited<std::remove_cvref_t<decltype(operand)>>) return std::tie(operand);
    else return std::tuple<>();
  }(given)...);
  return std::apply([&](auto &...tiles) { return issue(place, PIPE_V, name, {}, tiles...); }, tuple);
}
}  // namespace castsim_calls

#define CASTSIM_NAMED(NAME, PIPE, NUMBER)                                                                  \
  template <typename... X, typename... A> CASTSIM_CALL RecordEvent NAME(A &&...given) {                    \
    return castsim_calls::issue<NUMBER>(CASTSIM_HERE, PIPE, #NAME, {}, given...); }
#define CASTSIM_CHOICE(NAME, PIPE, NUMBER) CASTSIM_NAMED(NAME, PIPE, NUMBER)                               \
  template <auto Word, typename... X, typename... A> CASTSIM_CALL RecordEvent NAME(A &&...given) {         \
    castsim_calls::check_choice<Word>(CASTSIM_HERE, #NAME);                                                \
    return castsim_calls::issue<NUMBER>(CASTSIM_HERE, PIPE, #NAME, {}, given...); }
#define CASTSIM_OPERATION(NAME, PIPE, NUMBER) CASTSIM_NAMED(NAME, PIPE, NUMBER) CASTSIM_NAMED(NAME##_IMPL, PIPE, NUMBER)
#define CASTSIM_V(NAME) CASTSIM_CHOICE(NAME, PIPE_V, castsim_calls::OF_SOURCE) \
  CASTSIM_CHOICE(NAME##_IMPL, PIPE_V, castsim_calls::OF_SOURCE)

CASTSIM_EACH(CASTSIM_V, TADD, TSUB, TMUL, TDIV, TMAX, TMIN, TAND, TOR, TXOR, TSHL, TSHR, TREM, TFMOD, TPRELU, TADDC,
             TSUBC, TADDS, TSUBS, TMULS, TDIVS, TMAXS, TMINS, TANDS, TORS, TXORS, TSHLS, TSHRS, TREMS, TFMODS, TAXPY,
             TEXP, TLOG, TSQRT, TRSQRT, TRECIP, TABS, TNEG, TNOT, TRELU, TCMP, TCMPS, TSEL, TCVT, TROWSUM, TROWMAX,
             TROWMIN, TROWPROD, TROWARGMAX, TROWARGMIN, TROWEXPAND, TROWEXPANDADD, TROWEXPANDSUB, TROWEXPANDMUL,
             TROWEXPANDDIV, TROWEXPANDMAX, TROWEXPANDMIN, TROWEXPANDEXPDIF, TCOLSUM, TCOLMAX, TCOLMIN, TCOLPROD,
             TCOLARGMAX, TCOLARGMIN, TCOLEXPAND, TCOLEXPANDADD, TCOLEXPANDSUB, TCOLEXPANDMUL, TCOLEXPANDDIV,
             TCOLEXPANDMAX, TCOLEXPANDMIN, TCOLEXPANDEXPDIF, TPARTADD, TPARTMUL, TPARTMAX, TPARTMIN, TFILLPAD,
             TFILLPAD_INPLACE, TFILLPAD_EXPAND, TTRANS, TCONCAT, TCONCATIDX, TGATHERB, TSCATTER, TSORT32, TDEQUANT,
             TPACK, TPOW, TPOWS, TADDRELU, TSUBRELU, TADDRELUCONV, TSUBRELUCONV, TMULADDDST, TFUSEDMULADD,
             TFUSEDMULADDRELU, TPAIRREDUCESUM, TPARTARGMAX, TPARTARGMIN, TINTERLEAVE, TDEINTERLEAVE)
CASTSIM_OPERATION(TEXPANDS, PIPE_V, castsim_calls::OF_RESULT) CASTSIM_OPERATION(TSELS, PIPE_V, castsim_calls::OF_RESULT)
CASTSIM_OPERATION(TADDDEQRELU, PIPE_V, castsim_calls::FLOAT)
CASTSIM_OPERATION(TLRELU, PIPE_V, castsim_calls::FLOAT) CASTSIM_OPERATION(TMRGSORT, PIPE_V, castsim_calls::LENGTH)
CASTSIM_OPERATION(TEXTRACT, PIPE_V, castsim_calls::PLACE) CASTSIM_OPERATION(TINSERT, PIPE_V, castsim_calls::PLACE)
CASTSIM_OPERATION(TCI, PIPE_S, castsim_calls::OF_RESULT) CASTSIM_OPERATION(TMOV, PIPE_V, castsim_calls::OF_SOURCE)
CASTSIM_OPERATION(TGATHER, PIPE_V, castsim_calls::OF_SOURCE)
CASTSIM_OPERATION(TLOAD, PIPE_MTE2, castsim_calls::OF_SOURCE) CASTSIM_OPERATION(TSTORE, PIPE_MTE3, castsim_calls::OF_SOURCE)

// ------------------------------------------------------------------------------------------------ words among types

// A call whose explicit template arguments end with a word, or begin with one.
#define CASTSIM_WORDED(NAME, HEAD, PIPE, NUMBER, ...)                                                       \
  template <CASTSIM_OPEN HEAD, typename... A> CASTSIM_CALL RecordEvent NAME(A &&...given) {                \
    return castsim_calls::issue<castsim_calls::NUMBER>(CASTSIM_HERE, PIPE, #NAME, {__VA_ARGS__}, given...); }
#define CASTSIM_OPEN(...) __VA_ARGS__
#define CASTSIM_WORD(KEY, VALUE) castsim::attribute(KEY, (long long)VALUE)
CASTSIM_WORDED(TSTORE, (AnyTile T, AnyGlobal G, AtomicType Atomic), PIPE_MTE3, OF_SOURCE, CASTSIM_WORD("atomic", Atomic))
CASTSIM_WORDED(TCI, (AnyTile D, typename N, int Descending), PIPE_S, OF_RESULT, CASTSIM_WORD("descending", Descending))
CASTSIM_WORDED(TCI, (AnyTile D, AnyTile T, typename N, int Descending), PIPE_S, OF_RESULT,
               CASTSIM_WORD("descending", Descending))
CASTSIM_WORDED(TGATHER, (AnyTile D, AnyTile S, MaskPattern Pattern), PIPE_V, OF_SOURCE, CASTSIM_WORD("maskPattern", Pattern))
CASTSIM_WORDED(TGATHER, (AnyTile D, AnyTile S, AnyTile C, AnyTile T, CmpMode Mode), PIPE_V, OF_SOURCE,
               CASTSIM_WORD("cmpMode", Mode))
CASTSIM_WORDED(TGATHER, (AnyTile D, AnyTile S, AnyTile C, AnyTile T, CmpMode Mode, uint32_t Offset), PIPE_V, OF_SOURCE,
               CASTSIM_WORD("cmpMode", Mode), CASTSIM_WORD("offset", Offset))
#define CASTSIM_MODE(NAME, TYPE) template <TYPE Mode, typename... X, typename... A> CASTSIM_CALL RecordEvent NAME(A &&...) { \
    castsim::refuse(CASTSIM_HERE, #NAME " with a " #TYPE " is not modelled"); }
CASTSIM_MODE(TGATHER, GatherAxis) CASTSIM_MODE(TINSERT, TInsertMode) CASTSIM_MODE(TSTORE, STPhase)
CASTSIM_WORDED(TSCATTER, (AnyTile D, AnyTile S, MaskPattern Pattern), PIPE_V, OF_SOURCE, CASTSIM_WORD("maskPattern", Pattern))
// Exponents of groups of rows, into boxes.
CASTSIM_WORDED(TMOV, (int Axis), PIPE_V, OF_SOURCE, CASTSIM_WORD("grpAxis", Axis))
#define CASTSIM_QUANTISE(NAME)                                                                              \
  CASTSIM_WORDED(NAME, (QuantType Kind, typename... X), PIPE_V, OF_SOURCE, CASTSIM_WORD("kind", Kind))      \
  CASTSIM_WORDED(NAME, (QuantType Kind, AnyTile D, AnyTile S, AnyTile E, AnyTile M, AnyTile C, QuantScaleAlg Rule), PIPE_V, \
                 OF_SOURCE, CASTSIM_WORD("kind", Kind), CASTSIM_WORD("rule", Rule))                         \
  CASTSIM_WORDED(NAME, (int Axis, MxQuantAlg Algorithm, typename... X), PIPE_V, OF_SOURCE,                  \
                 CASTSIM_WORD("algorithm", Algorithm), CASTSIM_WORD("grpAxis", Axis))                       \
  CASTSIM_WORDED(NAME, (int Axis, MxQuantAlg Algorithm, bool Interleave, typename... X), PIPE_V, OF_SOURCE, \
                 CASTSIM_WORD("algorithm", Algorithm), CASTSIM_WORD("grpAxis", Axis), CASTSIM_WORD("interleave", Interleave))
CASTSIM_QUANTISE(TQUANT) CASTSIM_QUANTISE(TQUANT_IMPL)

// ------------------------------------------------------------------------------------------------ calls of their own

template <typename... A> RecordEvent TPREFETCH(A &&...) { return {PIPE_MTE2}; }
template <typename... A> void TPRINT(A &&...) {}
template <PrintFormat Format, typename... A> void TPRINT(A &&...) {}

// Other names for bytes of the buffer: no instruction.
namespace castsim_calls {
template <typename... W>
RecordEvent alias(const void *place, const char *name, castsim::TileState &dst, const castsim::TileState &src,
                  long long elements, W &...events) {
  castsim_events::wait_for(place, PIPE_S, events...);
  if (src.address < 0) castsim::refuse(place, name + std::string(" needs a tile with an address"));
  dst.address = src.address + elements * src.element_bits / 8;
  return {PIPE_S};
}
}  // namespace castsim_calls
template <AnyTile D, AnyTile S, Waited... W> CASTSIM_CALL RecordEvent TRESHAPE(D &dst, S &src, W &...events) {
  return castsim_calls::alias(CASTSIM_HERE, "TRESHAPE", dst, src, 0, events...);
}
template <AnyTile D, AnyTile S, Waited... W>
CASTSIM_CALL RecordEvent TSUBVIEW(D &dst, S &src, uint16_t row, uint16_t column, W &...events) {
  return castsim_calls::alias(CASTSIM_HERE, "TSUBVIEW", dst, src, row * S::RowStride + column * S::ColStride, events...);
}

// Merging of two to four sorted lists, all of which are used up.
#define CASTSIM_MERGE(HEAD, PARAMETERS, ...)                                                                      \
  template <AnyTile D, AnyTile T, CASTSIM_OPEN HEAD, bool Exhausted = false, Waited... W>                         \
  CASTSIM_CALL RecordEvent TMRGSORT(D &dst, MrgSortExecutedNumList &done, T &, CASTSIM_OPEN PARAMETERS, W &...events) { \
    if (Exhausted) castsim::refuse(CASTSIM_HERE, "TMRGSORT that ends with its first exhausted list is not modelled"); \
    done = {uint16_t(src0.valid_cols), uint16_t(src1.valid_cols)};                                                \
    return castsim_calls::issue(CASTSIM_HERE, PIPE_V, "TMRGSORT", {}, dst, __VA_ARGS__, events...); }
CASTSIM_MERGE((AnyTile S0, AnyTile S1), (S0 & src0, S1 &src1), src0, src1)
CASTSIM_MERGE((AnyTile S0, AnyTile S1, AnyTile S2), (S0 & src0, S1 &src1, S2 &src2), src0, src1, src2)
CASTSIM_MERGE((AnyTile S0, AnyTile S1, AnyTile S2, AnyTile S3), (S0 & src0, S1 &src1, S2 &src2, S3 &src3), src0, src1,
              src2, src3)

// ------------------------------------------------------------------------------------------------ not modelled

// castsim refuses them by name, or takes --opaque NAME=CYCLES.
#define CASTSIM_TILES_OF(NAME, ...) template <__VA_ARGS__, typename... A> CASTSIM_CALL RecordEvent NAME(A &&...given) { \
    return castsim_calls::issue_tiles(CASTSIM_HERE, #NAME, given...); }
#define CASTSIM_UNMODELLED(NAME) CASTSIM_TILES_OF(NAME, typename... X) CASTSIM_TILES_OF(NAME, auto V, typename... X) \
  CASTSIM_TILES_OF(NAME, auto V, auto W, auto... More) CASTSIM_TILES_OF(NAME, typename T, auto V, auto... More) \
  CASTSIM_TILES_OF(NAME, typename T, typename S, auto V, auto... More) \
  CASTSIM_TILES_OF(NAME, typename T, typename S, typename R, auto V, auto... More)
CASTSIM_EACH(CASTSIM_UNMODELLED, TTRI, THISTOGRAM, TRANDOM, TADDSC, TSUBSC, MGATHER, MSCATTER)

#define CASTSIM_CUBE_WORK(NAME) CASTSIM_REFUSED(NAME, "is work of the cube unit; castsim follows vector kernels")
CASTSIM_EACH(CASTSIM_CUBE_WORK, TMATMUL, TMATMUL_ACC, TMATMUL_BIAS, TMATMUL_MX, TGEMV, TGEMV_ACC, TGEMV_BIAS,
             TGEMV_MX, TIMG2COL, SETFMATRIX, TSETFMATRIX, TSET_IMG2COL_RPT, TSET_IMG2COL_PADDING)
CASTSIM_EACH(CASTSIM_CORES, TPUSH, TPOP, TALLOC, TFREE, SYNCALL, TSYNC_CVID, TGET, TPUT, TNOTIFY, TWAIT, TBROADCAST,
             TREDUCE)
