// The names of PTO C++ as a kernel meets them: types, tiles, operations, events, and what surrounds a kernel.
// Only what the public interface fixes is shared with it: names, parameter lists, values of enumerations, behaviour.
#pragma once

#include "castsim_device.hpp"
#include "castsim_names.hpp"

// ------------------------------------------------------------------------------------------------ words of the device

#define PTO_INTERNAL inline
#define OP_NAME(NAME)
#define OP_TYPE(NAME)
using aclFloat16 = uint16_t;
using aclrtStream = void *;
 namespace pto {
using ::int4b_t;
using ::aclFloat16;
using ::bfloat16_t;
using ::half;
}  // namespace pto
inline void set_mask_norm() {}
template <typename... A> void set_vector_mask(A...) {}
template <typename T> T __cce_get_tile_ptr(T pointer) { return pointer; }
template <typename... A> void set_atomic_none(A...) {}
#define CASTSIM_SILENT(NAME, WHY) template <typename... A> CASTSIM_CALL void NAME(A &&...) { castsim::note(CASTSIM_HERE, #NAME WHY); }
CASTSIM_SILENT(preload, " has no effect here: no cache of the scalar unit is modelled")
CASTSIM_SILENT(st_dev, " stores for the device, which castsim does not follow: no argument of the kernel changes")

#define CASTSIM_RAW(NAME) CASTSIM_REFUSED(NAME, "is an instruction below the tile level; castsim runs only tile operations")
#define CASTSIM_CORES(NAME) CASTSIM_REFUSED(NAME, "waits for or signals another core; castsim runs a single vector core")
#define CASTSIM_ATOMIC(NAME) CASTSIM_REFUSED(NAME, "needs atomic stores, which castsim does not model")
 CASTSIM_EACH(CASTSIM_RAW, vconv, vector_dup, vbrcb, vgather, vcopy, vreducev2, vcmpv, vnchwconv, copy_gm_to_ubuf, copy_ubuf_to_gm, copy_ubuf_to_ubuf, copy_gm_to_ubuf_align_b8,
             copy_gm_to_ubuf_align_b16, copy_gm_to_ubuf_align_b32, copy_ubuf_to_gm_align_b8,
             copy_ubuf_to_gm_align_b16, copy_ubuf_to_gm_align_b32, set_mask_count, set_ctrl, get_ctrl, sbitset1,
             sbitset0, set_deqscale)
#if __CCE_AICORE__ == 310
#include "castsim_intrinsics.hpp"
namespace pto {
template <typename T> using RegTensor = castsim::Vector<T>;
using MaskReg = vector_bool;
using UnalignReg = vector_align;
template <typename T> CASTSIM_CALL MaskReg CreatePredicate(uint32_t &count) {
  const MaskReg mask = castsim::count_mask(CASTSIM_HERE, castsim::MASK_BITS<T>, count);
  return count = uint32_t(castsim::lanes_left<T>(count)), mask;
}
}  // namespace pto
#else
#define __VEC_SCOPE__
CASTSIM_EACH(CASTSIM_RAW, vadd, vsub, vmul, vdiv, vmax, vmin, vadds, vmuls, vexp, vln, vabs, vsqrt, vlds, vsts, vcvt, vcgadd,
             vcgmax, vcmax, vcadd, vsel, vaxpy)
#define CASTSIM_REGISTER(NAME) struct NAME { CASTSIM_CALL NAME() { castsim::refuse(CASTSIM_HERE, \
  #NAME " is a vector register below the tile level; castsim runs only tile operations"); } };
CASTSIM_EACH(CASTSIM_REGISTER, vector_f16, vector_f32, vector_bf16, vector_s8, vector_s16, vector_s32, vector_s64, vector_u8,
             vector_u16, vector_u32, vector_u64, vector_bool, vector_align, vector_address)
#endif
CASTSIM_EACH(CASTSIM_CORES, ffts_cross_core_sync, wait_flag_dev, set_intra_block, wait_intra_block, set_cross_core,
             set_ffts_base_addr)
CASTSIM_EACH(CASTSIM_ATOMIC, set_atomic_add, set_atomic_max, set_atomic_min, set_atomic_f32, set_atomic_f16,
             set_atomic_s32)
 namespace pto {
 using event_t = ::event_t;

 template <auto Value> constexpr PadValue PadCustom = PadValue(1ull << 32 | castsim::bits_of(float(Value)));
template <typename T> constexpr PadValue PadValueCustom(T value) {
  return PadValue(1ull << 32 | castsim::bits_of(float(value)));
}
 struct MrgSortExecutedNumList {
  uint16_t mrgSortList0 = 0, mrgSortList1 = 0, mrgSortList2 = 0, mrgSortList3 = 0;
};

// ------------------------------------------------------------------------------------------------ global memory
namespace castsim_shapes {
// Those that are not stated take all five values, or as many as there are of them in turn, or without values 1.
constexpr void fill(int64_t *numbers, const std::array<int64_t, 5> &stated, std::initializer_list<int64_t> given) {
  const int64_t *next = given.begin();
  for (size_t place = 0; place < 5; ++place)
    numbers[place] = stated[place] != DYNAMIC ? stated[place]
                     : given.size() == 5      ? given.begin()[place]
                     : given.size()           ? *next++
                                              : 1;
}
}  // namespace castsim_shapes

#define CASTSIM_FIVE(NAME, MEMBER)                                                                            \
  template <int64_t N1 = DYNAMIC, int64_t N2 = DYNAMIC, int64_t N3 = DYNAMIC, int64_t N4 = DYNAMIC,            \
            int64_t N5 = DYNAMIC> struct NAME { int64_t MEMBER[5]{};                                           \
    static constexpr std::array<int64_t, 5> static##NAME{N1, N2, N3, N4, N5};                                  \
    static constexpr size_t open = (size_t(N1 < 0) + (N2 < 0) + (N3 < 0) + (N4 < 0) + (N5 < 0));               \
    template <typename... N> requires((sizeof...(N) == 0 || sizeof...(N) == 5 || sizeof...(N) == open) &&      \
                                      (std::is_convertible_v<N, int64_t> && ...))                              \
    constexpr NAME(N... given) { castsim_shapes::fill(MEMBER, static##NAME, {int64_t(given)...}); } };         \
  template <typename... N> requires(sizeof...(N) == 5)                                                         \
  NAME(N...) -> NAME<DYNAMIC, DYNAMIC, DYNAMIC, DYNAMIC, DYNAMIC>;
CASTSIM_FIVE(Shape, shape) CASTSIM_FIVE(Stride, stride)
 template <typename T, int64_t Rows = DYNAMIC, int64_t Cols = DYNAMIC, Layout L = Layout::ND>
struct TileShape2D : Shape<1, 1, 1, Rows, Cols> {
  using Shape<1, 1, 1, Rows, Cols>::Shape;
};
template <typename T, int64_t Rows, int64_t Cols>
struct TileShape2D<T, Rows, Cols, Layout::NZ>
    : Shape<1, Cols < 0 ? DYNAMIC : Cols / (C0_SIZE_BYTE / int(sizeof(T))), Rows < 0 ? DYNAMIC : Rows / FRACTAL_NZ_ROW,
            FRACTAL_NZ_ROW, C0_SIZE_BYTE / int(sizeof(T))> {
  static constexpr int C0Size = C0_SIZE_BYTE / sizeof(T), FractalNZSize = FRACTAL_NZ_ROW * C0Size;
  using Parent = Shape<1, Cols < 0 ? DYNAMIC : Cols / C0Size, Rows < 0 ? DYNAMIC : Rows / FRACTAL_NZ_ROW, FRACTAL_NZ_ROW, C0Size>;
  TileShape2D() = default;
  TileShape2D(int64_t rows, int64_t cols) : Parent(1, cols / C0Size, rows / FRACTAL_NZ_ROW, FRACTAL_NZ_ROW, C0Size) {}
};
 namespace castsim_shapes {
constexpr int64_t times(int64_t one, int64_t other) { return one == DYNAMIC || other == DYNAMIC ? DYNAMIC : one * other; }
template <int64_t R, int64_t C, Layout L>
using Pitches = std::conditional_t<L == Layout::DN, Stride<times(R, C), times(R, C), times(R, C), 1, R>,
                                   Stride<times(R, C), times(R, C), times(R, C), C, 1>>;
}  // namespace castsim_shapes
 template <typename T, int64_t Rows = DYNAMIC, int64_t Cols = DYNAMIC, Layout L = Layout::ND>
struct BaseShape2D : castsim_shapes::Pitches<Rows, Cols, L> {
  BaseShape2D() = default;
  BaseShape2D(int64_t rows, int64_t cols)
      : castsim_shapes::Pitches<Rows, Cols, L>(rows * cols, rows * cols, rows * cols, L == Layout::DN ? 1 : cols,
                                               L == Layout::DN ? rows : 1) {}
};
template <typename T, int64_t Rows, int64_t Cols>
struct BaseShape2D<T, Rows, Cols, Layout::NZ>
    : Stride<castsim_shapes::times(Rows, Cols), castsim_shapes::times(Rows, C0_SIZE_BYTE / sizeof(T)),
             FRACTAL_NZ_ROW * C0_SIZE_BYTE / int(sizeof(T)), C0_SIZE_BYTE / int(sizeof(T)), 1> {
  static constexpr int C0Size = C0_SIZE_BYTE / sizeof(T), FractalNZSize = FRACTAL_NZ_ROW * C0Size;
  using Parent = Stride<castsim_shapes::times(Rows, Cols), castsim_shapes::times(Rows, C0Size), FractalNZSize, C0Size, 1>;
  BaseShape2D() = default;
  BaseShape2D(int64_t rows, int64_t cols) : Parent(rows * cols, rows * C0Size, FractalNZSize, C0Size, 1) {}
};
 template <typename T, typename ShapeT, typename StrideT, Layout L = Layout::ND>
struct GlobalTensor : castsim::GlobalState {
  using DType = T;
  using RawDType = std::remove_cv_t<T>;
  using ElementType = RawDType;
  using Shape = ShapeT;
  using Stride = StrideT;
  static constexpr Layout layout = L;
  static constexpr std::array<int64_t, 5> staticShape = ShapeT::staticShape, staticStride = StrideT::staticStride;
  GlobalTensor() : GlobalTensor(nullptr) {}
  GlobalTensor(const volatile void *pointer, const ShapeT &given_shape = ShapeT(),
               const StrideT &given_stride = StrideT()) {
    static const char *const names[] = {"nd", "dn", "nz"};
    address = reinterpret_cast<uintptr_t>(pointer);
    element = castsim::Element<RawDType>::name();
    castsim::GlobalState::layout = int(L) < 3 ? names[int(L)] : "other";
    element_bits = castsim::bits_per_element<RawDType>;
    SetShape(given_shape);
    SetStride(given_stride);
  }
  T *data() const { return reinterpret_cast<T *>(address); }
#define CASTSIM_EXTENTS(NAME, TYPE, MEMBER)                                                              \
  template <typename I> int64_t Get##NAME(I dimension) const { return MEMBER[size_t(dimension)]; }       \
  template <auto Dimension> int64_t Get##NAME() const { return MEMBER[size_t(Dimension)]; }              \
  template <auto Dimension> void Set##NAME(int64_t value) { MEMBER[size_t(Dimension)] = value; }         \
  void Set##NAME(const TYPE &other) { std::copy_n(&other.MEMBER[0], 5, MEMBER.begin()); }                \
  void Set##NAME(int64_t n1, int64_t n2, int64_t n3, int64_t n4, int64_t n5) { MEMBER = {n1, n2, n3, n4, n5}; }
  CASTSIM_EXTENTS(Shape, ShapeT, shape) CASTSIM_EXTENTS(Stride, StrideT, stride)
  void SetAddr(const volatile void *pointer) { address = reinterpret_cast<uintptr_t>(pointer); }
};

// ------------------------------------------------------------------------------------------------ tiles
 template <TileType Loc_, typename E, int R, int C, BLayout BL = BLayout::RowMajor, int VR = R, int VC = C,
          SLayout SL = SLayout::NoneBox, int FractalBytes = 512, PadValue Pad = PadValue::Null,
          CompactMode Compact_ = CompactMode::Null>
struct Tile : castsim::TileState {
  using DType = E;
  using TileDType = E *;
  static constexpr TileType Loc = Loc_;
  static constexpr BLayout BFractal = BL;
  static constexpr SLayout SFractal = SL;
  static constexpr PadValue PadVal = Pad;
  static constexpr CompactMode Compact = Compact_;
  static constexpr int Rows = R, Cols = C, ValidRow = VR, ValidCol = VC, Numel = R * C;
  static constexpr int SFractalSize = FractalBytes;
  static constexpr bool isRowMajor = BL == BLayout::RowMajor, isBoxedLayout = SL != SLayout::NoneBox;
  static constexpr int RowStride = isRowMajor ? C : 1, ColStride = isRowMajor ? 1 : R;
  static constexpr int C0Size = FractalBytes == 1024 ? ACC_C0_SIZE : C0_SIZE_BYTE / int(sizeof(E));
  static constexpr int InnerRows = !isBoxedLayout ? 1 : SL == SLayout::RowMajor ? FRACTAL_NZ_ROW : C0Size;
  static constexpr int InnerCols = !isBoxedLayout ? 1 : SL == SLayout::RowMajor ? C0Size : FRACTAL_NZ_ROW;
  static constexpr int InnerNumel = InnerRows * InnerCols;
  static_assert(VR <= R && VC <= C, "the valid region is larger than the tile");
  Tile() { describe(); }
  template <typename N> requires((VR < 0) != (VC < 0) && std::is_convertible_v<N, int64_t>)
  CASTSIM_CALL Tile(N extent) {
    describe();
    resize(CASTSIM_HERE, VR < 0 ? int64_t(extent) : VR, VC < 0 ? int64_t(extent) : VC);
  }
  template <typename N, typename M>
    requires(VR < 0 && VC < 0 && std::is_convertible_v<N, int64_t> && std::is_convertible_v<M, int64_t>)
  CASTSIM_CALL Tile(N rows_now, M cols_now) {
    describe();
    resize(CASTSIM_HERE, int64_t(rows_now), int64_t(cols_now));
  }
  int GetValidRow() const { return valid_rows; }
  int GetValidCol() const { return valid_cols; }
  CASTSIM_CALL void SetValidRow(int64_t extent) { resize(CASTSIM_HERE, extent, valid_cols); }
  CASTSIM_CALL void SetValidCol(int64_t extent) { resize(CASTSIM_HERE, valid_rows, extent); }
  CASTSIM_CALL void SetValidShape(int64_t rows_now, int64_t cols_now) { resize(CASTSIM_HERE, rows_now, cols_now); }
  CASTSIM_CALL E GetValue(int64_t number) const {
    const unsigned long long code = castsim::element_of(CASTSIM_HERE, *this, number);
    E value;
    memcpy(static_cast<void *>(&value), &code, sizeof value);
    return value;
  }
  CASTSIM_CALL void SetValue(int64_t number, E value) {
    castsim::set_element(CASTSIM_HERE, *this, number, castsim::code_of(value));
  }
  E *data() const { return reinterpret_cast<E *>(uintptr_t(address < 0 ? 0 : address)); }
  static constexpr int GetRows() { return R; }
  static constexpr int GetCols() { return C; }
 private:
  void describe() {
    static const char *const locations[] = {"vec", "mat", "left", "right", "acc", "bias", "scaling", "left", "right"};
    static const char *const scatter[] = {"none_box", "row_major", "col_major"};
    number = ++castsim::tiles_made;
    element = castsim::Element<E>::name();
    element_bits = castsim::bits_per_element<E>;
    location = locations[int(Loc_)];
    rows = R, cols = C, valid_rows = VR < 0 ? R : VR, valid_cols = VC < 0 ? C : VC;
    block_layout = isRowMajor ? "row_major" : "col_major";
    scatter_layout = scatter[int(SL)];
    fractal = FractalBytes;
    compact = int(Compact);
    pad = (unsigned long long)(Pad);
    dynamic = VR < 0 || VC < 0;
  }
  void resize(const void *place, int64_t rows_now, int64_t cols_now) {
    valid_rows = int(rows_now), valid_cols = int(cols_now);
    if (valid_rows < 0 || valid_cols < 0 || valid_rows > R || valid_cols > C)
      castsim::refuse(place, "valid region " + std::to_string(valid_rows) + " x " + std::to_string(valid_cols) +
                                 " in a tile of " + std::to_string(R) + " x " + std::to_string(C));
  }
};

#define CASTSIM_CUBE(NAME, WHERE) template <typename E, int R, int C, int VR = R, int VC = C> \
  using NAME = Tile<TileType::WHERE, E, R, C, BLayout::ColMajor, VR, VC, SLayout::RowMajor, 512>;
CASTSIM_CUBE(TileLeft, Left) CASTSIM_CUBE(TileRight, Right) CASTSIM_CUBE(TileAcc, Acc)
template <int64_t... Extents> struct ConvTileShape { template <typename... N> ConvTileShape(N...) {} };
template <TileType Loc, typename E, int Bytes, Layout L, typename ShapeT = ConvTileShape<>> struct ConvTile {
  template <typename... N> CASTSIM_CALL ConvTile(N...) {
    castsim::refuse(CASTSIM_HERE, "castsim does not model convolution tiles (ConvTile)");
  }
};
CASTSIM_CUBE(TileLeftCompact, Left) CASTSIM_CUBE(TileRightCompact, Right) CASTSIM_CUBE(TileAccCompact, Acc)
 template <typename T> concept AnyTile = std::is_base_of_v<castsim::TileState, T>;
template <typename T> concept AnyGlobal = std::is_base_of_v<castsim::GlobalState, T>;
template <AnyTile T, typename A> void TASSIGN(T &tile, A address) { tile.address = (long long)(address); }
template <uint64_t Address, AnyTile T> void TASSIGN(T &tile) { tile.address = (long long)(Address); }
template <AnyGlobal G, typename P> void TASSIGN(G &global, P *pointer) {
  global.address = reinterpret_cast<uintptr_t>(pointer);
}

// ------------------------------------------------------------------------------------------------ events
 constexpr pipe_t CastsimPipeOf(Op op) {
#define CASTSIM_CASE(NAME) case Op::NAME:
  switch (op) {
    CASTSIM_EACH(CASTSIM_CASE, SCALAR, TRESHAPE, TCI, SETFMATRIX, SET_IMG2COL_RPT, SET_IMG2COL_PADDING) return PIPE_S;
    CASTSIM_EACH(CASTSIM_CASE, TLOAD, TPREFETCH, TEXPANDS_MAT, TFILLPAD_MAT, MGATHER_MAT) return PIPE_MTE2;
    CASTSIM_EACH(CASTSIM_CASE, TSTORE, TSTORE_VEC, TSTORE_MAT) return PIPE_MTE3;
    CASTSIM_EACH(CASTSIM_CASE, TMATMUL, TGEMV) return PIPE_M;
    CASTSIM_EACH(CASTSIM_CASE, TMOV_M2L, TMOV_M2R, TMOV_M2B, TEXTRACT_M2LR, TIMG2COL) return PIPE_MTE1;
    CASTSIM_EACH(CASTSIM_CASE, TSTORE_ACC, TMOV_A2V, TMOV_A2M, TMOV_V2M, TMOV_M2S, TEXTRACT_V2M) return PIPE_FIX;
    CASTSIM_EACH(CASTSIM_CASE, TEXTRACT_A2M, TINSERT_A2M, TPRINT, ALL, OP_COUNT) return PIPE_ALL;
    default: return PIPE_V;
  }
}

// The token that an operation returns. Waiting on it directly signals and waits at once.
struct RecordEvent { pipe_t from = PIPE_ALL; };
namespace castsim_events { inline std::array<int, 256> counters{}; }  // of flags, by pairs of pipes
 template <Op SrcOp, Op DstOp, bool AutoToken = true, event_t Id = EVENT_ID0> struct Event {
  static constexpr pipe_t from = CastsimPipeOf(SrcOp), to = CastsimPipeOf(DstOp);
  int token;
  Event() : token(next()) {}
  CASTSIM_CALL Event(RecordEvent) : token(next()) { record(CASTSIM_HERE); }
  CASTSIM_CALL Event &operator=(RecordEvent) {
    record(CASTSIM_HERE);
    return *this;
  }
  CASTSIM_CALL Event &Init() { return record(CASTSIM_HERE); }
  CASTSIM_CALL Event &Record() { return record(CASTSIM_HERE); }
  CASTSIM_CALL Event &Wait() { return wait(CASTSIM_HERE); }
  Event &record(const void *place) {
    if (from == PIPE_FIX || to == PIPE_FIX) castsim::refuse(place, "castsim does not model events of the cube unit");
    if (from != to) castsim::flag(place, "set", from, to, token);
    return *this;
  }
  Event &wait(const void *place) {
    if (from != to) castsim::flag(place, "wait", from, to, token);
    else if (!castsim::A5 || from == PIPE_MTE2 || from == PIPE_MTE3) castsim::barrier(place, from);
    return *this;
  }
 private:
  static int next() {
    if (!AutoToken) return int(Id);
    return castsim_events::counters[from * 16 + to]++ % 8;
  }
};
 namespace castsim_events {
template <typename T>
concept Waited = requires(T event, const void *place) { event.wait(place); } || std::is_same_v<T, RecordEvent>;
template <Waited... W> void wait_for(const void *place, pipe_t to, W &...events) {
  [[maybe_unused]] auto one = [&](auto &event) {
    if constexpr (std::is_same_v<std::remove_cvref_t<decltype(event)>, RecordEvent>) {
      if (event.from == to || event.from == PIPE_ALL) {
        castsim::barrier(place, event.from);
      } else {
        castsim::flag(place, "set", event.from, to, EVENT_ID7);
        castsim::flag(place, "wait", event.from, to, EVENT_ID7);
      }
    } else {
      event.wait(place);
    }
  };
  (one(events), ...);
}
}  // namespace castsim_events
using castsim_events::Waited;
 template <Waited... W> CASTSIM_CALL void TSYNC(W &...events) {
  castsim_events::wait_for(CASTSIM_HERE, PIPE_ALL, events...);
}
template <Op Of> CASTSIM_CALL void TSYNC() {
  constexpr pipe_t pipe = CastsimPipeOf(Of);
  static_assert(!castsim::A5 || pipe == PIPE_MTE2 || pipe == PIPE_MTE3 || pipe == PIPE_ALL,
                "A5 has barriers of MTE2, MTE3 and all pipes");
  castsim::barrier(CASTSIM_HERE, pipe);
}

#include "castsim_operations.hpp"
 }  // namespace pto
