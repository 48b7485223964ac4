// The operations on tiles, inside namespace pto: each waits for its events, is sent to castsim, and returns a token.
// A macro per operand list; each operation also has the library's name for its body, with _IMPL.

#define CASTSIM_OPEN(...) __VA_ARGS__
#define CASTSIM_BODY(NAME, HEAD, PARAMETERS, PIPE, MNEMONIC, OPERANDS) template <CASTSIM_OPEN HEAD, Waited... W> \
  CASTSIM_CALL RecordEvent NAME(CASTSIM_OPEN PARAMETERS, W &...events) {                 \
    castsim_events::wait_for(CASTSIM_HERE, PIPE, events...);                             \
    castsim::operation(CASTSIM_HERE, MNEMONIC, {CASTSIM_OPEN OPERANDS}); return {PIPE}; }
#define CASTSIM_FUNCTION(NAME, HEAD, PARAMETERS, MNEMONIC, OPERANDS)                     \
  CASTSIM_BODY(NAME, HEAD, PARAMETERS, PIPE_V, MNEMONIC, OPERANDS)                       \
  CASTSIM_BODY(NAME##_IMPL, HEAD, PARAMETERS, PIPE_V, MNEMONIC, OPERANDS)
#define CASTSIM_OUT castsim::given(dst), castsim::inputs()
#define CASTSIM_NUMBER(T) castsim::scalar<typename T::DType>(value)

#define CASTSIM_T(NAME, MNEMONIC) \
  CASTSIM_FUNCTION(NAME, (AnyTile D, AnyTile S), (D & dst, S &src), MNEMONIC, (CASTSIM_OUT, castsim::given(src)))
#define CASTSIM_TT(NAME, MNEMONIC)                                                                \
  CASTSIM_FUNCTION(NAME, (AnyTile D, AnyTile S0, AnyTile S1), (D & dst, S0 &src0, S1 &src1), MNEMONIC, \
                   (CASTSIM_OUT, castsim::given(src0), castsim::given(src1)))
#define CASTSIM_TTT(NAME, MNEMONIC)                                                                                \
  CASTSIM_FUNCTION(NAME, (AnyTile D, AnyTile S0, AnyTile S1, AnyTile S2), (D & dst, S0 &src0, S1 &src1, S2 &src2), \
                   MNEMONIC, (CASTSIM_OUT, castsim::given(src0), castsim::given(src1), castsim::given(src2)))
#define CASTSIM_TTTT(NAME, MNEMONIC)                                                                         \
  CASTSIM_FUNCTION(NAME, (AnyTile D, AnyTile S0, AnyTile S1, AnyTile S2, AnyTile S3),                        \
                   (D & dst, S0 &src0, S1 &src1, S2 &src2, S3 &src3), MNEMONIC,                              \
                   (CASTSIM_OUT, castsim::given(src0), castsim::given(src1), castsim::given(src2), castsim::given(src3)))
#define CASTSIM_TN(NAME, MNEMONIC)                                                                            \
  CASTSIM_FUNCTION(NAME, (AnyTile D, AnyTile S), (D & dst, S &src, typename S::DType value), MNEMONIC,        \
                   (CASTSIM_OUT, castsim::given(src), CASTSIM_NUMBER(S)))
#define CASTSIM_NT(NAME, MNEMONIC)                                                                            \
  CASTSIM_FUNCTION(NAME, (AnyTile D, AnyTile S), (D & dst, typename S::DType value, S &src), MNEMONIC,        \
                   (CASTSIM_OUT, CASTSIM_NUMBER(S), castsim::given(src)))
#define CASTSIM_TNT(NAME, MNEMONIC)                                                                           \
  CASTSIM_FUNCTION(NAME, (AnyTile D, AnyTile S, AnyTile T), (D & dst, S &src, typename S::DType value, T &tmp), \
                   MNEMONIC, (CASTSIM_OUT, castsim::given(src), CASTSIM_NUMBER(S), castsim::given(tmp)))

// An operation with a choice of algorithms as its first template argument; castsim models the default.
#define CASTSIM_CHOICE(NAME, HEAD, PARAMETERS, MNEMONIC, OPERANDS)                                          \
  CASTSIM_FUNCTION(NAME, HEAD, PARAMETERS, MNEMONIC, OPERANDS)                                              \
  template <auto Algorithm, CASTSIM_OPEN HEAD, Waited... W> requires std::is_enum_v<decltype(Algorithm)> \
  CASTSIM_CALL RecordEvent NAME(CASTSIM_OPEN PARAMETERS, W &...events) {                                    \
    if (int(Algorithm)) castsim::refuse(CASTSIM_HERE, #NAME " with another than the default algorithm is not modelled"); \
    castsim_events::wait_for(CASTSIM_HERE, PIPE_V, events...);                                              \
    castsim::operation(CASTSIM_HERE, MNEMONIC, {CASTSIM_OPEN OPERANDS}); return {PIPE_V}; }
#define CASTSIM_CHOSEN_T(NAME, MNEMONIC) \
  CASTSIM_CHOICE(NAME, (AnyTile D, AnyTile S), (D & dst, S &src), MNEMONIC, (CASTSIM_OUT, castsim::given(src)))
#define CASTSIM_CHOSEN_TT(NAME, MNEMONIC)                                                                \
  CASTSIM_CHOICE(NAME, (AnyTile D, AnyTile S0, AnyTile S1), (D & dst, S0 &src0, S1 &src1), MNEMONIC,     \
                 (CASTSIM_OUT, castsim::given(src0), castsim::given(src1)))
#define CASTSIM_CHOSEN_TTT(NAME, MNEMONIC)                                                                          \
  CASTSIM_CHOICE(NAME, (AnyTile D, AnyTile S0, AnyTile S1, AnyTile S2), (D & dst, S0 &src0, S1 &src1, S2 &src2),    \
                 MNEMONIC, (CASTSIM_OUT, castsim::given(src0), castsim::given(src1), castsim::given(src2)))
#define CASTSIM_CHOSEN_TN(NAME, MNEMONIC)                                                                   \
  CASTSIM_CHOICE(NAME, (AnyTile D, AnyTile S), (D & dst, S &src, typename S::DType value), MNEMONIC,        \
                 (CASTSIM_OUT, castsim::given(src), CASTSIM_NUMBER(S)))
#define CASTSIM_CHOSEN_NT(NAME, MNEMONIC)                                                                   \
  CASTSIM_CHOICE(NAME, (AnyTile D, AnyTile S), (D & dst, typename S::DType value, S &src), MNEMONIC,        \
                 (CASTSIM_OUT, CASTSIM_NUMBER(S), castsim::given(src)))

// ------------------------------------------------------------------------------------------------ elementwise
 CASTSIM_TT(TADD, "tadd") CASTSIM_TT(TSUB, "tsub") CASTSIM_TT(TMUL, "tmul") CASTSIM_CHOSEN_TT(TDIV, "tdiv")
CASTSIM_TT(TMAX, "tmax") CASTSIM_TT(TMIN, "tmin") CASTSIM_TT(TAND, "tand") CASTSIM_TT(TOR, "tor")
CASTSIM_TT(TXOR, "txor") CASTSIM_TTT(TXOR, "txor") CASTSIM_TT(TSHL, "tshl") CASTSIM_TT(TSHR, "tshr")
CASTSIM_CHOSEN_TT(TREM, "trem") CASTSIM_CHOSEN_TTT(TREM, "trem") CASTSIM_CHOSEN_TT(TFMOD, "tfmod")
CASTSIM_TT(TPRELU, "tprelu") CASTSIM_TTT(TPRELU, "tprelu") CASTSIM_TTT(TADDC, "taddc") CASTSIM_TTT(TSUBC, "tsubc")
CASTSIM_TN(TADDS, "tadds") CASTSIM_TN(TSUBS, "tsubs") CASTSIM_TN(TMULS, "tmuls") CASTSIM_CHOSEN_TN(TDIVS, "tdivs")
CASTSIM_CHOSEN_NT(TDIVS, "tdivs") CASTSIM_TN(TMAXS, "tmaxs") CASTSIM_TN(TMINS, "tmins") CASTSIM_TN(TANDS, "tands")
CASTSIM_TN(TORS, "tors") CASTSIM_TN(TXORS, "txors") CASTSIM_TNT(TXORS, "txors") CASTSIM_TN(TSHLS, "tshls")
CASTSIM_TN(TSHRS, "tshrs") CASTSIM_CHOSEN_TN(TREMS, "trems") CASTSIM_TNT(TREMS, "trems")
CASTSIM_CHOSEN_TN(TFMODS, "tfmods") CASTSIM_TN(TAXPY, "taxpy")
CASTSIM_FUNCTION(TLRELU, (AnyTile D, AnyTile S), (D & dst, S &src, float value), "tlrelu",
                 (CASTSIM_OUT, castsim::given(src), castsim::scalar<float>(value)))
CASTSIM_CHOSEN_T(TEXP, "texp") CASTSIM_CHOSEN_T(TLOG, "tlog") CASTSIM_CHOSEN_T(TSQRT, "tsqrt")
CASTSIM_CHOSEN_T(TRSQRT, "trsqrt") CASTSIM_CHOSEN_TT(TRSQRT, "trsqrt") CASTSIM_CHOSEN_T(TRECIP, "trecip")
CASTSIM_T(TABS, "tabs") CASTSIM_T(TNEG, "tneg") CASTSIM_T(TNOT, "tnot") CASTSIM_T(TRELU, "trelu")
CASTSIM_FUNCTION(TEXPANDS, (AnyTile D), (D & dst, typename D::DType value), "texpands", (CASTSIM_OUT, CASTSIM_NUMBER(D)))

#define CASTSIM_MODE castsim::attribute("cmpMode", (long long)mode)
CASTSIM_FUNCTION(TCMP, (AnyTile D, AnyTile S0, AnyTile S1), (D & dst, S0 &src0, S1 &src1, CmpMode mode), "tcmp",
                 (CASTSIM_OUT, castsim::given(src0), castsim::given(src1), CASTSIM_MODE))
CASTSIM_FUNCTION(TCMPS, (AnyTile D, AnyTile S), (D & dst, S &src, typename S::DType value, CmpMode mode), "tcmps",
                 (CASTSIM_OUT, castsim::given(src), CASTSIM_NUMBER(S), CASTSIM_MODE))
CASTSIM_TTTT(TSEL, "tsel") CASTSIM_TTT(TSEL, "tsel")
CASTSIM_FUNCTION(TSELS, (AnyTile D, AnyTile M, AnyTile S, AnyTile T),
                 (D & dst, M &mask, S &src, T &tmp, typename S::DType value), "tsels",
                 (CASTSIM_OUT, castsim::given(mask), castsim::given(src), castsim::given(tmp), CASTSIM_NUMBER(S)))

// ------------------------------------------------------------------------------------------------ rows and columns
 CASTSIM_TT(TROWSUM, "trowsum") CASTSIM_TT(TROWMAX, "trowmax") CASTSIM_TT(TROWMIN, "trowmin")
CASTSIM_TT(TROWPROD, "trowprod") CASTSIM_TT(TROWARGMAX, "trowargmax") CASTSIM_TT(TROWARGMIN, "trowargmin")
CASTSIM_T(TROWEXPAND, "trowexpand")
#define CASTSIM_ROWS(NAME, MNEMONIC) CASTSIM_CHOSEN_TT(NAME, MNEMONIC) CASTSIM_CHOSEN_TTT(NAME, MNEMONIC)
CASTSIM_ROWS(TROWEXPANDADD, "trowexpandadd") CASTSIM_ROWS(TROWEXPANDSUB, "trowexpandsub")
CASTSIM_ROWS(TROWEXPANDMUL, "trowexpandmul") CASTSIM_ROWS(TROWEXPANDDIV, "trowexpanddiv")
CASTSIM_ROWS(TROWEXPANDMAX, "trowexpandmax") CASTSIM_ROWS(TROWEXPANDMIN, "trowexpandmin")
CASTSIM_ROWS(TROWEXPANDEXPDIF, "trowexpandexpdif")
CASTSIM_T(TCOLSUM, "tcolsum") CASTSIM_T(TCOLMAX, "tcolmax") CASTSIM_T(TCOLMIN, "tcolmin") CASTSIM_T(TCOLPROD, "tcolprod")
CASTSIM_FUNCTION(TCOLSUM, (AnyTile D, AnyTile S, AnyTile T), (D & dst, S &src, T &tmp, bool binary), "tcolsum",
                 (CASTSIM_OUT, castsim::given(src), castsim::given(tmp),
                  castsim::attribute("isBinary", binary ? "true" : "false")))
CASTSIM_TT(TCOLARGMAX, "tcolargmax") CASTSIM_TT(TCOLARGMIN, "tcolargmin") CASTSIM_T(TCOLEXPAND, "tcolexpand")
CASTSIM_CHOSEN_TT(TCOLEXPANDADD, "tcolexpandadd") CASTSIM_CHOSEN_TT(TCOLEXPANDSUB, "tcolexpandsub")
CASTSIM_CHOSEN_TT(TCOLEXPANDMUL, "tcolexpandmul") CASTSIM_CHOSEN_TT(TCOLEXPANDDIV, "tcolexpanddiv")
CASTSIM_CHOSEN_TT(TCOLEXPANDMAX, "tcolexpandmax") CASTSIM_CHOSEN_TT(TCOLEXPANDMIN, "tcolexpandmin")
CASTSIM_CHOSEN_TT(TCOLEXPANDEXPDIF, "tcolexpandexpdif")
CASTSIM_TT(TPARTADD, "tpartadd") CASTSIM_TT(TPARTMUL, "tpartmul") CASTSIM_TT(TPARTMAX, "tpartmax")
CASTSIM_TT(TPARTMIN, "tpartmin")

// ------------------------------------------------------------------------------------------------ movement
#define CASTSIM_TRANSFERS(LOAD, STORE)                                                                                  \
  CASTSIM_BODY(LOAD, (AnyTile T, AnyGlobal G), (T & dst, G &src), PIPE_MTE2, "tload", (CASTSIM_OUT, castsim::given(src))) \
  CASTSIM_BODY(STORE, (AnyTile T, AnyGlobal G, AtomicType Atomic = AtomicType::AtomicNone), (G & dst, T &src), PIPE_MTE3, \
               castsim_stores::mnemonic(CASTSIM_HERE, Atomic), (CASTSIM_OUT, castsim::given(src)))
namespace castsim_stores {
inline const char *mnemonic(const void *place, AtomicType atomic) {
  if (atomic != AtomicType::AtomicNone) castsim::refuse(place, "TSTORE adds atomically, which castsim does not model");
  return "tstore";
}
}  // namespace castsim_stores
CASTSIM_TRANSFERS(TLOAD, TSTORE) CASTSIM_TRANSFERS(TLOAD_IMPL, TSTORE_IMPL)
template <typename G, Waited... W> RecordEvent TPREFETCH(G &&...) { return {PIPE_MTE2}; }
CASTSIM_T(TMOV, "tmov") CASTSIM_TT(TMOV, "tmov") CASTSIM_T(TFILLPAD, "tfillpad")
template <int Axis, AnyTile D, AnyTile S, AnyTile T, Waited... W>  // exponents of groups of rows, into boxes
CASTSIM_CALL RecordEvent TMOV(D &dst, S &src, T &tmp, W &...events) {
  static_assert(Axis == 0 || Axis == 1, "TMOV has exponents of groups of rows (0) or of columns (1)");
  castsim_events::wait_for(CASTSIM_HERE, PIPE_V, events...);
  castsim::operation(CASTSIM_HERE, "tmov", {castsim::given(dst), castsim::inputs(), castsim::given(src),
                     castsim::given(tmp), castsim::attribute("grpAxis", Axis ? "axis1" : "axis0")});
  return {PIPE_V};
}
CASTSIM_T(TFILLPAD_INPLACE, "tfillpad_inplace") CASTSIM_T(TFILLPAD_EXPAND, "tfillpad_expand")
CASTSIM_TT(TTRANS, "ttrans") CASTSIM_TT(TCONCAT, "tconcat") CASTSIM_TTTT(TCONCAT, "tconcatidx")
CASTSIM_TTTT(TCONCATIDX, "tconcatidx")
#define CASTSIM_PART(NAME, MNEMONIC)                                                                                   \
  CASTSIM_FUNCTION(NAME, (AnyTile D, AnyTile S), (D & dst, S &src, uint32_t row, uint32_t column), MNEMONIC,           \
                   (CASTSIM_OUT, castsim::given(src), castsim::index(row), castsim::index(column)))                    \
  CASTSIM_FUNCTION(NAME, (AnyTile D, AnyTile S), (D & dst, S &src), MNEMONIC,                                          \
                   (CASTSIM_OUT, castsim::given(src), castsim::index(0), castsim::index(0)))
CASTSIM_PART(TEXTRACT, "textract") CASTSIM_PART(TINSERT, "tinsert")

// Other names for bytes of the buffer: no instruction.
template <AnyTile D, AnyTile S, Waited... W> CASTSIM_CALL RecordEvent TRESHAPE(D &dst, S &src, W &...events) {
  castsim_events::wait_for(CASTSIM_HERE, PIPE_S, events...);
  if (src.address < 0) castsim::refuse(CASTSIM_HERE, "TRESHAPE of a tile without an address");
  dst.address = src.address;
  return {PIPE_S};
}
template <AnyTile D, AnyTile S, Waited... W>
CASTSIM_CALL RecordEvent TSUBVIEW(D &dst, S &src, uint16_t row, uint16_t column, W &...events) {
  castsim_events::wait_for(CASTSIM_HERE, PIPE_S, events...);
  if (src.address < 0) castsim::refuse(CASTSIM_HERE, "TSUBVIEW of a tile without an address");
  dst.address = src.address + (row * S::RowStride + column * S::ColStride) * src.element_bits / 8;
  return {PIPE_S};
}
template <typename... A> void TPRINT(A &&...) {}

// ------------------------------------------------------------------------------------------------ casts
 namespace castsim_cast {
inline const char *const ROUNDINGS[] = {"NONE", "RINT", "ROUND", "FLOOR", "CEIL", "TRUNC", "ODD"};
template <typename... W>
RecordEvent cast(const void *place, const castsim::TileState &dst, const castsim::TileState &src,
                 const castsim::TileState *tmp, RoundMode mode, const char *saturation, W &...events) {
  castsim_events::wait_for(place, PIPE_V, events...);
  const auto rounding = castsim::attribute("rmode", ROUNDINGS[int(mode)]), sat = castsim::attribute("sat", saturation);
  if (tmp)
    castsim::operation(place, "tcvt",
                       {castsim::given(dst), castsim::inputs(), castsim::given(src), castsim::given(*tmp), rounding, sat});
  else
    castsim::operation(place, "tcvt", {castsim::given(dst), castsim::inputs(), castsim::given(src), rounding, sat});
  return {PIPE_V};
}
constexpr const char *word(SaturationMode mode) { return mode == SaturationMode::ON ? "ON" : "OFF"; }
}  // namespace castsim_cast

#define CASTSIM_CASTS(HEAD) template <CASTSIM_OPEN HEAD AnyTile D, AnyTile S, AnyTile T, Waited... W> \
  CASTSIM_CALL RecordEvent TCVT(D &dst, S &src, T &tmp, RoundMode mode, SaturationMode saturation, W &...events) { \
    return castsim_cast::cast(CASTSIM_HERE, dst, src, &tmp, mode, castsim_cast::word(saturation), events...); } \
  template <CASTSIM_OPEN HEAD AnyTile D, AnyTile S, AnyTile T, Waited... W>                                     \
  CASTSIM_CALL RecordEvent TCVT(D &dst, S &src, T &tmp, RoundMode mode, W &...events) {                         \
    return castsim_cast::cast(CASTSIM_HERE, dst, src, &tmp, mode, "-", events...); } \
  template <CASTSIM_OPEN HEAD AnyTile D, AnyTile S, Waited... W>                                                \
  CASTSIM_CALL RecordEvent TCVT(D &dst, S &src, RoundMode mode, SaturationMode saturation, W &...events) {      \
    return castsim_cast::cast(CASTSIM_HERE, dst, src, nullptr, mode, castsim_cast::word(saturation), events...); } \
  template <CASTSIM_OPEN HEAD AnyTile D, AnyTile S, Waited... W>                                                \
  CASTSIM_CALL RecordEvent TCVT(D &dst, S &src, RoundMode mode, W &...events) {                                 \
    return castsim_cast::cast(CASTSIM_HERE, dst, src, nullptr, mode, "-", events...); }
CASTSIM_CASTS(()) CASTSIM_CASTS((bool NeedSetCtrl, ))

// ------------------------------------------------------------------------------------------------ indices, sorting
 template <AnyTile D, typename N, int Descending = 0, Waited... W>
CASTSIM_CALL RecordEvent TCI(D &dst, N value, W &...events) {
  castsim_events::wait_for(CASTSIM_HERE, PIPE_S, events...);
  castsim::operation(CASTSIM_HERE, "tci", {CASTSIM_OUT, CASTSIM_NUMBER(D),
                     castsim::attribute("descending", Descending ? "true" : "false")});
  return {PIPE_S};
}
template <AnyTile D, typename N, int Descending = 0, AnyTile T, Waited... W>
CASTSIM_CALL RecordEvent TCI(D &dst, N value, T &tmp, W &...events) {
  castsim_events::wait_for(CASTSIM_HERE, PIPE_S, events...);
  castsim::operation(CASTSIM_HERE, "tci", {CASTSIM_OUT, CASTSIM_NUMBER(D), castsim::given(tmp),
                     castsim::attribute("descending", Descending ? "true" : "false")});
  return {PIPE_S};
}
template <AnyTile D, AnyTile T, typename N, int Descending, Waited... W>
CASTSIM_CALL RecordEvent TCI(D &dst, N value, T &tmp, W &...events) {
  castsim_events::wait_for(CASTSIM_HERE, PIPE_S, events...);
  castsim::operation(CASTSIM_HERE, "tci", {CASTSIM_OUT, CASTSIM_NUMBER(D), castsim::given(tmp),
                     castsim::attribute("descending", Descending ? "true" : "false")});
  return {PIPE_S};
}
CASTSIM_TT(TGATHER, "tgather") CASTSIM_TTT(TGATHER, "tgather")
template <AnyTile D, AnyTile S, MaskPattern Pattern, Waited... W>
CASTSIM_CALL RecordEvent TGATHER(D &dst, S &src, W &...events) {
  castsim_events::wait_for(CASTSIM_HERE, PIPE_V, events...);
  castsim::operation(CASTSIM_HERE, "tgather",
                     {CASTSIM_OUT, castsim::given(src), castsim::attribute("maskPattern", (long long)Pattern)});
  return {PIPE_V};
}
template <AnyTile D, AnyTile S, AnyTile C, AnyTile T, CmpMode Mode = CmpMode::EQ, uint32_t Offset = 0, Waited... W>
CASTSIM_CALL RecordEvent TGATHER(D &dst, S &src, typename S::DType value, C &counts, T &tmp, W &...events) {
  castsim_events::wait_for(CASTSIM_HERE, PIPE_V, events...);
  castsim::operation(CASTSIM_HERE, "tgather",
                     {castsim::given(dst), castsim::given(counts), castsim::inputs(), castsim::given(src), CASTSIM_NUMBER(S),
                      castsim::given(tmp), castsim::attribute("cmpMode", (long long)Mode),
                      castsim::attribute("offset", (long long)Offset)});
  return {PIPE_V};
}
CASTSIM_TT(TGATHERB, "tgatherb") CASTSIM_TT(TSCATTER, "tscatter") CASTSIM_TT(TSORT32, "tsort32")
CASTSIM_TTT(TSORT32, "tsort32")
CASTSIM_FUNCTION(TMRGSORT, (AnyTile D, AnyTile S), (D & dst, S &src, uint32_t length), "tmrgsort",
                 (CASTSIM_OUT, castsim::given(src), castsim::scalar<int32_t>(int32_t(length))))
#define CASTSIM_MERGE(HEAD, PARAMETERS, ...)                                                                      \
  template <AnyTile D, AnyTile T, CASTSIM_OPEN HEAD, bool Exhausted = false, Waited... W>                         \
  CASTSIM_CALL RecordEvent TMRGSORT(D &dst, MrgSortExecutedNumList &done, T &, CASTSIM_OPEN PARAMETERS, W &...events) { \
    if (Exhausted) castsim::refuse(CASTSIM_HERE, "TMRGSORT that ends with its first exhausted list is not modelled"); \
    done = {uint16_t(src0.valid_cols), uint16_t(src1.valid_cols)};                                                \
    castsim_events::wait_for(CASTSIM_HERE, PIPE_V, events...);                                                    \
    castsim::operation(CASTSIM_HERE, "tmrgsort", {CASTSIM_OUT, __VA_ARGS__}); return {PIPE_V}; }
CASTSIM_MERGE((AnyTile S0, AnyTile S1), (S0 & src0, S1 &src1), castsim::given(src0), castsim::given(src1))
CASTSIM_MERGE((AnyTile S0, AnyTile S1, AnyTile S2), (S0 & src0, S1 &src1, S2 &src2), castsim::given(src0),
              castsim::given(src1), castsim::given(src2))
CASTSIM_MERGE((AnyTile S0, AnyTile S1, AnyTile S2, AnyTile S3), (S0 & src0, S1 &src1, S2 &src2, S3 &src3),
              castsim::given(src0), castsim::given(src1), castsim::given(src2), castsim::given(src3))

// ------------------------------------------------------------------------------------------------ quantisation
 CASTSIM_TTT(TDEQUANT, "tdequant") CASTSIM_T(TPACK, "tpack")
namespace castsim_quantise {
template <typename... W>
RecordEvent bytes(const void *place, QuantType kind, const castsim::TileState &dst, const castsim::TileState *tmp,
                  const castsim::TileState &src, const castsim::TileState &scale, const castsim::TileState *offset,
                  W &...events) {
  const bool asymmetric = kind == QuantType::INT8_ASYM;
  if (!asymmetric && kind != QuantType::INT8_SYM)
    castsim::refuse(place, "TQUANT of a scale tile is to INT8_SYM or INT8_ASYM; MXFP8 is given three tiles by pointer");
  if (asymmetric != bool(offset))
    castsim::refuse(place, asymmetric ? "TQUANT to INT8_ASYM needs an offset" : "TQUANT to INT8_SYM has no offset");
  castsim_events::wait_for(place, PIPE_V, events...);
  const auto type = castsim::attribute("quant_type", asymmetric ? "INT8_ASYM" : "INT8_SYM");
  const auto send = [&](auto... inputs) {
    if (tmp)
      castsim::operation(place, "tquant", {castsim::given(dst), castsim::given(*tmp), castsim::inputs(), inputs..., type});
    else
      castsim::operation(place, "tquant", {castsim::given(dst), castsim::inputs(), inputs..., type});
  };
  if (offset)
    send(castsim::given(src), castsim::given(scale), castsim::given(*offset));
  else
    send(castsim::given(src), castsim::given(scale));
  return {PIPE_V};
}
template <typename... W>
RecordEvent blocks(const void *place, bool narrow, bool nv, bool rows, bool interleave, const castsim::TileState &dst,
                   const castsim::TileState &src, const castsim::TileState &exponents, const castsim::TileState &maxima,
                   const castsim::TileState &scaling, W &...events) {
  if (narrow != (dst.element == std::string_view("e2m1")))
    castsim::refuse(place, narrow ? "TQUANT to MXFP4_E2M1 writes tiles of float4_e2m1x2_t" : "TQUANT to MXFP8 writes bytes");
  castsim_events::wait_for(place, PIPE_V, events...);
  castsim::operation(place, "tquant.mx",
                     {castsim::given(dst), castsim::given(exponents), castsim::given(maxima), castsim::given(scaling),
                      castsim::inputs(), castsim::given(src), castsim::attribute("quant_type", narrow ? "MXFP4_E2M1" : "MXFP8"),
                      castsim::attribute("quantScaleAlg", nv ? "nv" : "ocp"),
                      castsim::attribute("grpAxis", rows ? "axis0" : "axis1"),
                      castsim::attribute("interleave", interleave ? "true" : "false")});
  return {PIPE_V};
}
}  // namespace castsim_quantise

#define CASTSIM_QUANTISE(NAME)                                                                                     \
  template <QuantType Kind, AnyTile D, AnyTile S, AnyTile P, Waited... W>                                          \
  CASTSIM_CALL RecordEvent NAME(D &dst, S &src, P &scale, W &...events) {                                          \
    return castsim_quantise::bytes(CASTSIM_HERE, Kind, dst, nullptr, src, scale, nullptr, events...); }            \
  template <QuantType Kind, AnyTile D, AnyTile S, AnyTile P, Waited... W>                                          \
  CASTSIM_CALL RecordEvent NAME(D &dst, S &src, P &scale, std::type_identity_t<P> *offset, W &...events) {         \
    return castsim_quantise::bytes(CASTSIM_HERE, Kind, dst, nullptr, src, scale, offset, events...); }             \
  template <QuantType Kind, AnyTile D, AnyTile S, AnyTile P, AnyTile T, Waited... W>                               \
  CASTSIM_CALL RecordEvent NAME(D &dst, S &src, P &scale, T &tmp, W &...events) {                                  \
    return castsim_quantise::bytes(CASTSIM_HERE, Kind, dst, &tmp, src, scale, nullptr, events...); }               \
  template <QuantType Kind, AnyTile D, AnyTile S, AnyTile P, AnyTile T, Waited... W>                               \
  CASTSIM_CALL RecordEvent NAME(D &dst, S &src, P &scale, T &tmp, std::type_identity_t<P> *offset, W &...events) { \
    return castsim_quantise::bytes(CASTSIM_HERE, Kind, dst, &tmp, src, scale, offset, events...); }                \
  template <QuantType Kind, AnyTile D, AnyTile S, AnyTile E, AnyTile M, AnyTile C,                                 \
            QuantScaleAlg Algorithm = QuantScaleAlg::OCP, Waited... W>                                             \
  CASTSIM_CALL RecordEvent NAME(D &dst, S &src, E *exponents, M *maxima, C *scaling, W &...events) {               \
    if (Kind != QuantType::MXFP8 && Kind != QuantType::MXFP4_E2M1)                                                 \
      castsim::refuse(CASTSIM_HERE, "TQUANT to bytes is given a scale tile, not three tiles by pointer");          \
    return castsim_quantise::blocks(CASTSIM_HERE, Kind != QuantType::MXFP8, Algorithm == QuantScaleAlg::NV, false, \
                                    false, dst, src, *exponents, *maxima, *scaling, events...); }                  \
  template <int Axis, MxQuantAlg Algorithm, bool Interleave = false, AnyTile D, AnyTile S, AnyTile E, AnyTile M,   \
            AnyTile C, Waited... W>                                                                                \
  CASTSIM_CALL RecordEvent NAME(D &dst, S &src, E *exponents, M *maxima, C *scaling, W &...events) {               \
    static_assert(Axis == 0 || Axis == 1, "TQUANT has groups of rows (0) or of columns (1)");                      \
    if (Algorithm == MxQuantAlg::Hif4)                                                                             \
      castsim::refuse(CASTSIM_HERE, "TQUANT to HiF4 is not in the A5's library");                                  \
    return castsim_quantise::blocks(CASTSIM_HERE, Algorithm > MxQuantAlg::NvMxFp8E4M3,                             \
                                    Algorithm == MxQuantAlg::NvMxFp8E4M3 || Algorithm == MxQuantAlg::NvMxFp4E2M1,  \
                                    Axis == 0, Interleave, dst, src, *exponents, *maxima, *scaling, events...); }
CASTSIM_QUANTISE(TQUANT) CASTSIM_QUANTISE(TQUANT_IMPL)

// ------------------------------------------------------------------------------------------------ not modelled

// Sent with their tiles alone: castsim refuses them by name, or takes --opaque NAME=CYCLES.
namespace castsim_unmodelled {
template <typename... A> RecordEvent send(const void *place, const char *mnemonic, A &...operands) {
  castsim::settle_writes();
  castsim::say("o", castsim::trail_of(place), mnemonic);
  int tiles = 0;
  auto one = [&](auto &operand) {
    if constexpr (AnyTile<std::remove_cvref_t<decltype(operand)>>) {
      if (tiles++ == 1) castsim::say("|");
      castsim::say(castsim::words_of(operand));
    }
  };
  (one(operands), ...);
  castsim::end();
  return {PIPE_V};
}
}  // namespace castsim_unmodelled
#define CASTSIM_UNMODELLED(NAME, MNEMONIC) template <typename... A> \
  CASTSIM_CALL RecordEvent NAME(const A &...operands) {                               \
    return castsim_unmodelled::send(CASTSIM_HERE, MNEMONIC, operands...); } \
  template <auto V, auto... More, typename... A> CASTSIM_CALL RecordEvent NAME(const A &...operands) { \
    return castsim_unmodelled::send(CASTSIM_HERE, MNEMONIC, operands...); } \
  template <typename T, auto V, auto... More, typename... A> CASTSIM_CALL RecordEvent NAME(const A &...operands) { \
    return castsim_unmodelled::send(CASTSIM_HERE, MNEMONIC, operands...); }
CASTSIM_UNMODELLED(TTRI, "ttri") CASTSIM_UNMODELLED(TINTERLEAVE, "tinterleave")
CASTSIM_UNMODELLED(TDEINTERLEAVE, "tdeinterleave") CASTSIM_UNMODELLED(THISTOGRAM, "thistogram")
CASTSIM_UNMODELLED(TRANDOM, "trandom") CASTSIM_UNMODELLED(TPAIRREDUCESUM, "tpairreducesum")
CASTSIM_UNMODELLED(TPARTARGMAX, "tpartargmax") CASTSIM_UNMODELLED(TPARTARGMIN, "tpartargmin")
CASTSIM_UNMODELLED(TMULADDDST, "tmuladddst") CASTSIM_UNMODELLED(TFUSEDMULADD, "tfusedmuladd")
CASTSIM_UNMODELLED(TFUSEDMULADDRELU, "tfusedmuladdrelu") CASTSIM_UNMODELLED(TSUBRELU, "tsubrelu")
CASTSIM_UNMODELLED(TADDRELU, "taddrelu") CASTSIM_UNMODELLED(TSUBRELUCONV, "tsubreluconv")
CASTSIM_UNMODELLED(TADDRELUCONV, "taddreluconv") CASTSIM_UNMODELLED(TADDDEQRELU, "tadddeqrelu")
CASTSIM_UNMODELLED(TADDSC, "taddsc") CASTSIM_UNMODELLED(TSUBSC, "tsubsc") CASTSIM_UNMODELLED(MGATHER, "mgather")
CASTSIM_UNMODELLED(MSCATTER, "mscatter") CASTSIM_UNMODELLED(TPOW, "tpow") CASTSIM_UNMODELLED(TPOWS, "tpows")

#define CASTSIM_CUBE_WORK(NAME) CASTSIM_REFUSED(NAME, "is work of the cube unit; castsim follows vector kernels")
CASTSIM_CUBE_WORK(TMATMUL) CASTSIM_CUBE_WORK(TMATMUL_ACC) CASTSIM_CUBE_WORK(TMATMUL_BIAS) CASTSIM_CUBE_WORK(TMATMUL_MX)
CASTSIM_CUBE_WORK(TGEMV) CASTSIM_CUBE_WORK(TGEMV_ACC) CASTSIM_CUBE_WORK(TGEMV_BIAS) CASTSIM_CUBE_WORK(TGEMV_MX)
CASTSIM_CUBE_WORK(TIMG2COL) CASTSIM_CUBE_WORK(SETFMATRIX) CASTSIM_CUBE_WORK(TSETFMATRIX)
CASTSIM_CUBE_WORK(TSET_IMG2COL_RPT) CASTSIM_CUBE_WORK(TSET_IMG2COL_PADDING)
CASTSIM_CORES(TPUSH) CASTSIM_CORES(TPOP) CASTSIM_CORES(TALLOC) CASTSIM_CORES(TFREE) CASTSIM_CORES(SYNCALL)
CASTSIM_CORES(TSYNC_CVID) CASTSIM_CORES(TGET) CASTSIM_CORES(TPUT) CASTSIM_CORES(TNOTIFY) CASTSIM_CORES(TWAIT)
CASTSIM_CORES(TBROADCAST) CASTSIM_CORES(TREDUCE)
