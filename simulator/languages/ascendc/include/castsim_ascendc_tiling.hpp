// Parameters that the host computes: structures by macros, their bytes behind the pointer of an argument, tiling keys.

#define BEGIN_TILING_DATA_DEF(NAME) struct NAME {
#define TILING_DATA_FIELD_DEF(TYPE, FIELD) TYPE FIELD{}
#define TILING_DATA_FIELD_DEF_ARR(TYPE, LENGTH, FIELD) TYPE FIELD[LENGTH]{}
#define TILING_DATA_FIELD_DEF_STRUCT(TYPE, FIELD) TYPE FIELD{}
#define END_TILING_DATA_DEF }
#define REGISTER_TILING_DATA_CLASS(...)
#define REGISTER_TILING_DEFAULT(...)
#define REGISTER_TILING_FOR_TILINGKEY(...)
#define REGISTER_NONE_TILING
#define TILING_KEY_IS(KEY) (castsim::tiling_key(castsim::here()) == (unsigned long long)(KEY))
#ifndef TILING_KEY_VAR
#define TILING_KEY_VAR castsim::tiling_key(castsim::here())
#endif
#ifndef CASTSIM_TILING_STRUCT
#define CASTSIM_TILING_STRUCT castsim_name_the_structure_with_tiling_struct
#endif
#define GET_TILING_DATA_WITH_STRUCT(STRUCT, NAME, POINTER) \
  STRUCT NAME; memcpy(static_cast<void *>(&NAME), reinterpret_cast<const void *>(POINTER), sizeof(STRUCT))
#define GET_TILING_DATA(NAME, POINTER) GET_TILING_DATA_WITH_STRUCT(CASTSIM_TILING_STRUCT, NAME, POINTER)
#define GET_TILING_DATA_PTR_WITH_STRUCT(STRUCT, NAME, POINTER) const STRUCT *NAME = reinterpret_cast<const STRUCT *>(POINTER)
#define GET_TILING_DATA_MEMBER(STRUCT, MEMBER, NAME, POINTER) \
  decltype(STRUCT::MEMBER) NAME; memcpy(static_cast<void *>(&NAME), &reinterpret_cast<const STRUCT *>(POINTER)->MEMBER, sizeof(NAME))
#define COPY_TILING_WITH_STRUCT(STRUCT, POINTER, NAME) GET_TILING_DATA_WITH_STRUCT(STRUCT, NAME, POINTER)
#define KERNEL_TASK_TYPE_DEFAULT(TYPE) castsim::task_type(castsim::here(), TYPE, #TYPE)
#define KERNEL_TASK_TYPE(KEY, TYPE) ((void)0)

enum castsim_kernel_type { KERNEL_TYPE_AIV_ONLY, KERNEL_TYPE_MIX_AIV_1_0, KERNEL_TYPE_MIX_AIV_HARD_SYNC,
                           KERNEL_TYPE_AIC_ONLY, KERNEL_TYPE_MIX_AIC_1_0, KERNEL_TYPE_MIX_AIC_1_1, KERNEL_TYPE_MIX_AIC_1_2,
                           KERNEL_TYPE_MIX_AIC_HARD_SYNC, KERNEL_TYPE_MAX };
// The element types as ORIG_DTYPE_X is compared with them.
#define DT_FLOAT 0
#define DT_FLOAT16 1
#define DT_INT8 2
#define DT_INT32 3
#define DT_UINT8 4
#define DT_INT16 6
#define DT_UINT16 7
#define DT_UINT32 8
#define DT_INT64 9
#define DT_UINT64 10
#define DT_DOUBLE 11
#define DT_BOOL 12
#define DT_BF16 27
#define DT_INT4 29

namespace castsim {
inline unsigned long long tiling_key(const void *) {
  const auto given = values.find("tiling_key");
  if (given == values.end()) refuse(NOWHERE, "missing tiling_key");
  return number_from<unsigned long long>("tiling_key", given->second);
}
inline void task_type(const void *place, castsim_kernel_type type, const char *name) {
  if (type >= KERNEL_TYPE_AIC_ONLY)
    refuse(place, std::string(name) + " starts the cube unit; castsim runs vector kernels (KERNEL_TYPE_AIV_ONLY)");
}

// A structure that the generated main fills, a field a line, and puts behind the pointer of an argument.
template <typename T> void fill_field(T &field, const char *name, const char *text) {
  if constexpr (std::is_array_v<T>) refuse(NOWHERE, std::string("argument ") + name + " is an array: give its elements, " + name + "[0]");
  else if constexpr (std::is_class_v<T> && !std::is_convertible_v<float, T>)
    refuse(NOWHERE, std::string("argument ") + name + " is a structure: give its fields, " + name + ".FIELD");
  else field = number_from<T>(name, text);
}
inline void publish(int position, const void *bytes, size_t size) {
  auto *start = reinterpret_cast<char *>(base_of(position));
  const size_t pages = (size + PAGE - 1) / PAGE * PAGE;
  mprotect(start, pages, PROT_READ | PROT_WRITE);
  memcpy(start, bytes, size);
  mprotect(start, pages, PROT_READ);
}
}  // namespace castsim
