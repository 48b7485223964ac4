// The side of a recording that runs in the kernel's own process: numbers, memory, and what is sent to castsim.
// Everything in namespace castsim is castsim's own; the vendor's library shares names and behaviour alone with it.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <limits>
#include <map>
#include <string>
#include <sys/mman.h>
#include <tuple>
#include <type_traits>
#include <ucontext.h>
#include <unistd.h>
#include <utility>
#include <vector>

#define CASTSIM_CALL __attribute__((noinline))
#define CASTSIM_HERE __builtin_return_address(0)
 namespace castsim {
 inline int channel = 3;                       // a socket's file descriptor
constexpr uintptr_t FIRST = 0x100000000000;   // where the first buffer begins
constexpr uintptr_t DISTANCE = 1ull << 36;    // from one buffer to the next
constexpr uintptr_t MARGIN = 1ull << 34;      // before the pointer that a kernel is given
constexpr int MOST_BUFFERS = 64;
constexpr uintptr_t PAGE = 4096;
const void *const NOWHERE = nullptr;

// ------------------------------------------------------------------------------------------------ what is sent
 inline std::string sending;
 inline void flush() {
  for (size_t done = 0; done < sending.size();) {
    const ssize_t count = ::write(channel, sending.data() + done, sending.size() - done);
    if (count <= 0 && errno != EINTR) _exit(3);
    done += size_t(count > 0 ? count : 0);
  }
  sending.clear();
}
 inline std::string hexadecimal(unsigned long long value) {
  char text[24];
  snprintf(text, sizeof text, "%llx", value);
  return text;
}

// A place in the kernel is a return address, or the addresses that lead to a fault, innermost first.
inline std::string trail_of(const std::string &trail) { return trail; }
inline std::string trail_of(const void *place) { return hexadecimal(reinterpret_cast<uintptr_t>(place) - 1); }

// Adds the words of a line, with a blank before all but the first.
template <typename... Words> void say(const Words &...words) {
  auto one = [](const auto &word) {
    if (!sending.empty() && sending.back() != '\n') sending += ' ';
    if constexpr (std::is_integral_v<std::remove_cvref_t<decltype(word)>>) sending += std::to_string(word);
    else
      sending += word;
  };
  (one(words), ...);
}
 inline void end() {
  sending += '\n';
  if (sending.size() > 60000) flush();
}
 template <typename Place> [[noreturn]] inline void refuse(const Place &place, const std::string &why) {
  sending.resize(sending.rfind('\n') + 1);  // what is refused may be half said
  say("E", trail_of(place), why);
  end();
  flush();
  _exit(0);
}

inline void note(const void *place, const std::string &text) {
  say("n", trail_of(place), text);
  end();
}

// Returns whether castsim knows the bytes asked for.
inline bool answer(void *into, size_t size) {
  char known = 0;
  auto take = [](void *to, size_t count) {
    for (size_t done = 0; done < count;) {
      ssize_t got = ::read(channel, static_cast<char *>(to) + done, count - done);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) _exit(3);
      done += size_t(got);
    }
  };
  take(&known, 1);
  if (known == 'y') take(into, size);
  return known == 'y';
}

// ------------------------------------------------------------------------------------------------ global memory
 struct PageState {
  bool writable = false;
  std::string trail;
  std::array<unsigned char, PAGE> before{};
};
 inline std::map<uintptr_t, PageState> pages;
inline bool any_writable = false;
inline bool quiet = false;  // what is read is said apart
 inline uintptr_t base_of(int buffer) { return FIRST + uintptr_t(buffer) * DISTANCE + MARGIN; }
inline std::vector<std::string> names;  // of the arguments
inline std::array<bool, MOST_BUFFERS> pointed{};  // which of them point to memory
 inline int buffer_of(uintptr_t address) {
  const uintptr_t number = (address - FIRST) / DISTANCE;
  return address >= FIRST && number < MOST_BUFFERS && pointed[number] ? int(number) : -1;
}

// What an address outside all arguments may be, for messages.
inline std::string unlike(uintptr_t address) {
  if (address < PAGE) return "a null pointer";
  return address < FIRST ? "address 0x" + hexadecimal(address) : std::string("an address far from all arguments");
}

// Descriptors of tensors in an array of arguments: pages of those whose shapes are unknown, and what messages say.
inline std::map<uintptr_t, int> shapeless_pages;
inline int shapeless(uintptr_t address) {
  const auto page = shapeless_pages.find(address & ~(PAGE - 1));
  return page == shapeless_pages.end() ? 0 : page->second;
}
inline std::string named_slot(int position) { return names[0] + "[" + std::to_string(position - 1) + "]"; }
inline std::string filled_by() { return ": pass it with `--in " + names[0] + "=FILE`"; }
 inline void forget_page(uintptr_t start) {
  madvise(reinterpret_cast<void *>(start), PAGE, MADV_DONTNEED);
  mprotect(reinterpret_cast<void *>(start), PAGE, PROT_NONE);
}

// What the kernel wrote to global memory by plain assignments, as stores of the scalar unit.
inline void settle_writes() {
  if (!any_writable) return;
  any_writable = false;
  for (auto page = pages.begin(); page != pages.end();) {
    const auto &[start, state] = *page;
    if (!state.writable) {
      ++page;
      continue;
    }
    const unsigned char *now = reinterpret_cast<const unsigned char *>(start);
    for (size_t first = 0, last; first < PAGE; first = last) {
      last = first + 1;
      if (now[first] == state.before[first]) continue;
      for (size_t next = last; next < PAGE && next < last + 8; ++next)  // changes at most 8 bytes apart are one piece
        if (now[next] != state.before[next]) last = next + 1;
      std::string bytes;
      for (size_t index = first; index < last; ++index) {
        bytes += hexadecimal(256 + now[index]).substr(1);
        bytes += now[index] == state.before[index] ? '?' : '!';
      }
      const int buffer = buffer_of(start);
      say("w", state.trail, buffer, (long long)(start + first) - (long long)base_of(buffer), bytes);
      end();
    }
    forget_page(start);
    page = pages.erase(page);
  }
}
 inline void forget_buffer(int buffer) {
  std::erase_if(pages, [buffer](const auto &page) {
    if (buffer_of(page.first) != buffer) return false;
    forget_page(page.first);
    return true;
  });
}
 inline std::string trail_of_fault(void *context) {
  auto *machine = &static_cast<ucontext_t *>(context)->uc_mcontext;
#if defined(__x86_64__)
  uintptr_t counter = uintptr_t(machine->gregs[REG_RIP]) + 1, frame = uintptr_t(machine->gregs[REG_RBP]);
#elif defined(__aarch64__)
  uintptr_t counter = machine->pc + 1, frame = machine->regs[29];
#else
  uintptr_t counter = 1, frame = uintptr_t(machine) * 0;
#endif
  std::string trail = hexadecimal(counter - 1);
  for (int depth = 0; depth < 6 && frame >= PAGE && frame % sizeof(void *) == 0; ++depth) {
    const uintptr_t *saved = reinterpret_cast<const uintptr_t *>(frame);
    if (saved[0] <= frame) break;
    trail += ',' + hexadecimal(saved[1] - 1);
    frame = saved[0];
  }
  return trail;
}
 inline bool is_write(void *context) {
#if defined(__x86_64__)
  return static_cast<ucontext_t *>(context)->uc_mcontext.gregs[REG_ERR] & 2;
#else
  (void)context;
  return false;  // the second fault on a page is a write
#endif
}
 inline void fault(int number, siginfo_t *info, void *context) {
  const uintptr_t address = reinterpret_cast<uintptr_t>(info->si_addr);
  const std::string place = trail_of_fault(context);
  const int buffer = buffer_of(address);
  if (const int slot = shapeless(address))
    refuse(place, "`" + named_slot(slot) + "` is a descriptor that nothing fills" + filled_by());
  if (number != SIGSEGV || buffer < 0)
    refuse(place, "accesses host memory outside all arguments: a null pointer, or an address in the buffer");
  const uintptr_t start = address & ~(PAGE - 1);
  auto *bytes = reinterpret_cast<unsigned char *>(start);
  const long long offset = (long long)address - (long long)base_of(buffer);
  auto found = pages.find(start);
  const bool again = found != pages.end();
  if (again && found->second.writable) refuse(place, "accesses global memory in a way that castsim cannot track");
  PageState &state = pages[start];
  state.trail = place;
  if (!again) {
    settle_writes();
    say("p", place, buffer, (long long)start - (long long)base_of(buffer), offset, is_write(context) ? "w" : quiet ? "v" : "r");
    end();
    flush();
    std::array<unsigned char, PAGE> held;
    if (!answer(held.data(), PAGE)) held.fill(0xA5);
    mprotect(bytes, PAGE, PROT_READ | PROT_WRITE);
    memcpy(bytes, held.data(), PAGE);
  }
  if (again || is_write(context)) {
    mprotect(bytes, PAGE, PROT_READ | PROT_WRITE);
    memcpy(state.before.data(), bytes, PAGE);
    state.writable = any_writable = true;
  } else {
    mprotect(bytes, PAGE, PROT_READ);
  }
}
 inline void prepare_memory(int buffers) {
  for (int buffer = 0; buffer < buffers; ++buffer) {
    void *wanted = reinterpret_cast<void *>(FIRST + uintptr_t(buffer) * DISTANCE);
    void *got = mmap(wanted, DISTANCE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    if (got != wanted) refuse(NOWHERE, "the host has no address space left for the arguments");
  }
  static std::array<char, 1 << 16> stack;
  stack_t other{};
  other.ss_sp = stack.data();
  other.ss_size = stack.size();
  sigaltstack(&other, nullptr);
  struct sigaction action {};
  action.sa_sigaction = fault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  sigaction(SIGSEGV, &action, nullptr);
  sigaction(SIGBUS, &action, nullptr);
}

// ------------------------------------------------------------------------------------------------ numbers
 constexpr uint32_t bits_of(float value) { return __builtin_bit_cast(uint32_t, value); }

// The code of a float in a narrower format of the same layout, rounded to nearest, ties to even.
constexpr uint32_t narrowed(float value, int exponent_bits, int fraction_bits) {
  const uint32_t sign = bits_of(value) >> 31 << (exponent_bits + fraction_bits), magnitude = bits_of(value) & 0x7FFFFFFF;
  const uint32_t infinity = ((1u << exponent_bits) - 1) << fraction_bits, drop = 23 - fraction_bits;
  const uint32_t shift = 128 - (1u << (exponent_bits - 1));  // between the biases
  if (magnitude > 0x7F800000) return sign | infinity | 1u << (fraction_bits - 1);
  if (shift && magnitude < (shift + 1) << 23) {  // a sum of f32 rounds a subnormal number where it is to end
    const float unit = __builtin_bit_cast(float, (shift + drop + 1) << 23);
    return sign | (bits_of(__builtin_bit_cast(float, magnitude) + unit) - bits_of(unit));
  }
  const uint32_t code = (magnitude - (shift << 23) + (1u << (drop - 1)) - 1 + (magnitude >> drop & 1)) >> drop;
  return sign | (code < infinity ? code : infinity);
}
 constexpr float widened(uint32_t code, int exponent_bits, int fraction_bits) {
  const uint32_t bits = exponent_bits + fraction_bits, shift = 128 - (1u << (exponent_bits - 1));
  const uint32_t magnitude = (code & ((1u << bits) - 1)) << (23 - fraction_bits), sign = code >> bits << 31;
  if (magnitude >= ((1u << exponent_bits) - 1) << 23) return __builtin_bit_cast(float, sign | 0x7F800000 | magnitude);
  const float scale = __builtin_bit_cast(float, (127 + shift) << 23);
  return __builtin_bit_cast(float, sign | bits_of(__builtin_bit_cast(float, magnitude) * scale));
}

// A float of 16 bits; arithmetic is done in f32, as the host compiler of the library does it.
template <int ExponentBits, int FractionBits> struct Float16 {
  uint16_t code = 0;
  constexpr Float16() = default;
  template <typename N, typename = std::enable_if_t<std::is_arithmetic_v<N>>>
  constexpr Float16(N value) : code(uint16_t(narrowed(float(value), ExponentBits, FractionBits))) {}
  template <int E, int F> constexpr explicit Float16(Float16<E, F> other) : Float16(float(other)) {}
  constexpr operator float() const { return widened(code, ExponentBits, FractionBits); }
  constexpr Float16 &operator+=(float other) { return *this = Float16(float(*this) + other); }
  constexpr Float16 &operator-=(float other) { return *this = Float16(float(*this) - other); }
  constexpr Float16 &operator*=(float other) { return *this = Float16(float(*this) * other); }
  constexpr Float16 &operator/=(float other) { return *this = Float16(float(*this) / other); }
};

// Elements that kernels move and convert, and do not compute with on the scalar unit.
template <int Kind> struct Byte {
  uint8_t code = 0;
  constexpr Byte() = default;
  template <typename N, typename = std::enable_if_t<std::is_integral_v<N>>>
  constexpr Byte(N value) : code(uint8_t(value)) {}
  constexpr operator uint8_t() const { return code; }
};
 template <typename T> struct Element;
template <typename T> requires std::is_integral_v<T> struct Element<T> {
  static const char *name() {
    static const char *const names[] = {"u8", "u16", "u32", "u64", "i8", "i16", "i32", "i64"};
    return names[std::is_signed_v<T> * 4 + std::countr_zero(sizeof(T))];
  }
};
#define CASTSIM_ELEMENT(TYPE, NAME) template <> struct Element<TYPE> { static const char *name() { return NAME; } };
 template <typename T> inline unsigned long long code_of(T value) {
  unsigned long long code = 0;
  memcpy(&code, &value, sizeof value);
  return code;
}

// ------------------------------------------------------------------------------------------------ operands
 struct TileState {
  int number = 0;
  long long address = -1;  // none
  const char *element = "";
  const char *location = "";
  int rows = 0, cols = 0, valid_rows = 0, valid_cols = 0;
  const char *block_layout = "", *scatter_layout = "";
  int fractal = 512, compact = 0, element_bits = 8, dynamic = 0;
  unsigned long long pad = 0;
};
 inline int tiles_made = 0;
 struct GlobalState {
  uintptr_t address = 0;
  const char *element = "";
  const char *layout = "";
  int element_bits = 8;
  std::array<int64_t, 5> shape{}, stride{};
};

// Operands, and other words of an operation, as they are sent.
template <typename... Parts> std::string joined(const std::string &head, const Parts &...parts) {
  std::string text = head;
  ((text += ',', text += std::to_string(parts)), ...);
  return text;
}
 inline std::string given(const TileState &tile) {
  const std::string text = joined("t", tile.number, tile.address, tile.rows, tile.cols, tile.valid_rows, tile.valid_cols,
                                  tile.fractal, tile.compact, tile.pad, tile.dynamic);
  return text + ',' + tile.element + ',' + tile.location + ',' + tile.block_layout + ',' + tile.scatter_layout;
}
 inline std::string given(const void *place, const GlobalState &global) {
  const int buffer = buffer_of(global.address);
  if (buffer < 0) refuse(place, "accesses global memory outside all arguments: " + unlike(global.address));
  const std::string head = joined("g", buffer, (long long)global.address - (long long)base_of(buffer));
  std::string text = head + ',' + global.element + ',' + global.layout;
  for (const auto &five : {global.shape, global.stride})
    for (int64_t number : five) text = joined(text, number);
  return text;
}
 inline std::string scalar(const char *element, unsigned long long code) {
  return std::string("s,") + element + ',' + hexadecimal(code);
}
template <typename T> inline std::string scalar(T value) { return scalar(Element<T>::name(), code_of(value)); }
inline std::string index(long long value) { return joined("i", value); }
inline std::string attribute(const char *key, const char *text) { return std::string("a,") + key + ',' + text; }
inline std::string attribute(const char *key, long long number) { return joined(std::string("a,") + key, number); }
 using Words = std::vector<std::string>;
inline void operation(const void *place, const std::string &mnemonic, const Words &words) {
  settle_writes();
  say("o", trail_of(place), mnemonic);
  for (const std::string &word : words) say(word);
  end();
  if (words[0][0] == 'g') forget_buffer(atoi(&words[0][2]));  // a store
}
 inline void order(const void *place, const char *what, const char *from, const char *to, int event) {
  settle_writes();
  say("f", trail_of(place), what, from, to, event);
  end();
}
 inline unsigned long long element_of(const void *place, const TileState &tile, long long number) {
  settle_writes();
  say("q", trail_of(place), given(tile), number);
  end();
  flush();
  unsigned long long code = 0;
  answer(&code, sizeof code);
  return code;
}
 inline void set_element(const void *place, const TileState &tile, long long number, unsigned long long code) {
  operation(place, "tsetval", {given(tile), index(number), scalar(tile.element, code)});
}

// An element of global memory that the scalar unit loads by a call.
inline void global_read(const void *place, uintptr_t address, const char *element) {
  const int buffer = buffer_of(address);
  if (buffer < 0) refuse(place, "accesses global memory outside all arguments: " + unlike(address));
  say("l", trail_of(place), buffer, (long long)address - (long long)base_of(buffer), element);
  end();
}

// One that it stores by a call; a page that has been read has it too.
inline void global_store(const void *place, uintptr_t address, const char *element, const void *value, size_t size) {
  const int buffer = buffer_of(address);
  if (buffer < 0) refuse(place, "accesses global memory outside all arguments: " + unlike(address));
  settle_writes();
  unsigned long long code = 0;
  memcpy(&code, value, size);
  say("k", trail_of(place), buffer, (long long)address - (long long)base_of(buffer), element, hexadecimal(code));
  end();
  const auto page = pages.find(address & ~(PAGE - 1));
  if (page == pages.end()) return;
  auto *bytes = reinterpret_cast<void *>(page->first);
  mprotect(bytes, PAGE, PROT_READ | PROT_WRITE);
  memcpy(reinterpret_cast<void *>(address), value, size);
  mprotect(bytes, PAGE, PROT_READ);
}

// ------------------------------------------------------------------------------------------------ the entry's call
 struct Core {
  long long block = 0, blocks = 1, sub = 0, subs = 1;
  bool fixed = false;
};
inline Core core;
}  // namespace castsim

// Built-in variables of the device compiler; kernels have parameters of these names.
inline int64_t block_idx = 0, block_num = 1;
 namespace castsim {
inline void launched(long long blocks) { if (!core.fixed && blocks > 0) block_num = core.blocks = blocks; }
 inline std::map<std::string, std::string> values;
 template <typename T> inline T number_from(const std::string &name, const std::string &text) {
  errno = 0;
  char *rest = nullptr;
  if constexpr (std::is_same_v<T, bool>) {
    return text != "0" && text != "false" && text != "False";
  } else if constexpr (std::is_integral_v<T> || std::is_enum_v<T>) {
    if (text[0] == '-' || std::is_enum_v<T> || std::is_signed_v<T>) {
      const long long value = strtoll(text.c_str(), &rest, 0);
      if (!errno && !*rest && T(value) == T(T(value)) && (long long)T(value) == value) return T(value);
    } else {
      const unsigned long long value = strtoull(text.c_str(), &rest, 0);
      if (!errno && !*rest && (unsigned long long)T(value) == value) return T(value);
    }
    refuse(NOWHERE, "argument " + name + ": " + text + " does not fit its type");
  } else {
    const double value = strtod(text.c_str(), &rest);
    if (*rest) refuse(NOWHERE, "argument " + name + ": " + text + " is not a number");
    if constexpr (std::is_same_v<T, double>) return value;
    return T(float(value));
  }
}
inline std::map<int, const void *> structures;  // that the generated main has filled, by position
inline void (*prepared)() = nullptr;            // called once memory is there
 template <typename T> inline T argument(int position) {
  const std::string &name = names[size_t(position)];
  const auto found = values.find(name);
  if constexpr (std::is_pointer_v<T>) {
    if (found != values.end() && found->second == "0") return nullptr;
    if (found != values.end()) refuse(NOWHERE, "argument " + name + " is a pointer: --arg can only set it to 0, the null pointer");
    pointed[size_t(position)] = true;
    sending += "b " + std::to_string(position);
    if constexpr (requires { Element<std::remove_cv_t<std::remove_pointer_t<T>>>::name(); })
      sending += std::string(" ") + Element<std::remove_cv_t<std::remove_pointer_t<T>>>::name();
    sending += '\n';
    return reinterpret_cast<T>(base_of(position));
  } else {
    if constexpr (std::is_class_v<T> && !std::is_convertible_v<float, T>) {
      if (!structures.count(position)) refuse(NOWHERE, "argument " + name + " is a structure, whose type was not seen");
      return *static_cast<const T *>(structures[position]);
    } else {
    if (found == values.end()) refuse(NOWHERE, "missing " + name);
    return number_from<T>(name, found->second);
    }
  }
}

// What stands in an array of arguments: numbers, and addresses of tensors' elements or of their descriptors.
using Slot = int64_t (*)(int position);
inline int64_t unused(int) { return 0; }
inline int64_t number_of(int position) {
  const std::string &name = names[size_t(position)];
  const auto known = values.find(name);
  if (known == values.end()) refuse(NOWHERE, "missing " + name);
  if (known->second.find_first_of(".en") == std::string::npos) return number_from<int64_t>(name, known->second);
  return int64_t(bits_of(number_from<float>(name, known->second)));
}
inline int64_t data_of(int position) {
  pointed[size_t(position)] = true;
  sending += "b " + std::to_string(position) + "\n";
  return int64_t(base_of(position));
}

// The members of simpler's tensors by their names. A shape of which nothing is known lies in a page that faults.
template <typename D> int64_t descriptor_of(int position) {
  static_assert(requires(D &tensor) { tensor.buffer.addr; }, "castsim fills descriptors that have buffer.addr");
  constexpr uintptr_t pages = (sizeof(D) + PAGE - 1) / PAGE * PAGE;
  char *start = static_cast<char *>(mmap(nullptr, 2 * pages, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  const auto given = values.find(names[size_t(position)] + ".shape");
  size_t known = sizeof(D);
  if constexpr (requires(D &tensor) { tensor.shapes[0]; }) known = offsetof(D, shapes);
  D &tensor = *reinterpret_cast<D *>(start + pages - known);
  tensor.buffer.addr = uint64_t(data_of(position));
  if constexpr (requires { tensor.start_offset = 0; }) tensor.start_offset = 0;
  if (given == values.end()) {
    mprotect(start + pages, pages, PROT_NONE);
    for (uintptr_t page = 0; page < pages; page += PAGE) shapeless_pages[uintptr_t(start) + pages + page] = position;
    return reinterpret_cast<int64_t>(&tensor);
  }
  char *next = given->second.data();
  const uint64_t bytes = strtoull(next, &next, 10);
  std::vector<uint64_t> extents;
  while (*next) extents.push_back(strtoull(next, &next, 10));
  if constexpr (requires { tensor.buffer.size = 0; }) tensor.buffer.size = bytes;
  if constexpr (requires { tensor.ndims = 0; }) tensor.ndims = std::remove_cvref_t<decltype(tensor.ndims)>(extents.size());
  if constexpr (requires { tensor.shapes[0] = 0; }) {
    if (extents.size() > std::size(tensor.shapes))
      refuse(NOWHERE, named_slot(position) + " has more extents than its descriptor");
    std::copy(extents.begin(), extents.end(), std::begin(tensor.shapes));
  }
  return reinterpret_cast<int64_t>(&tensor);
}
inline void fill_slots(const std::vector<Slot> &slots) {
  if (slots.empty()) return;
  auto *array = reinterpret_cast<int64_t *>(base_of(0));
  mprotect(array, PAGE, PROT_READ | PROT_WRITE);
  for (size_t slot = 0; slot < slots.size(); ++slot) array[slot] = slots[slot](int(slot) + 1);
  mprotect(array, PAGE, PROT_READ);
}
 template <typename... Parameters, size_t... Positions>
inline void call(void (*entry)(Parameters...), std::index_sequence<Positions...>) {
  const std::tuple<std::remove_cvref_t<Parameters>...> arguments{
      argument<std::remove_cvref_t<Parameters>>(int(Positions))...};
  entry(std::get<Positions>(arguments)...);
}
 template <typename... Parameters>
inline int start(void (*entry)(Parameters...), std::initializer_list<const char *> given_names,
                 const std::vector<Slot> &slots, int count, char **words) {
  channel = atoi(words[1]);
  for (const char *name : given_names) names.emplace_back(name);
  if (names.size() != sizeof...(Parameters) + slots.size()) {
    names.clear();
    for (size_t position = 0; position < sizeof...(Parameters); ++position)
      names.push_back("arg" + std::to_string(position));
  }
  core = {atoll(words[2]), atoll(words[3]), atoll(words[4]), atoll(words[5]), atoll(words[3]) > 0};
  if (!core.fixed) core.blocks = 1;
  block_idx = core.block;
  block_num = core.blocks;
  for (int word = 6; word + 1 < count; word += 2) values[words[word]] = words[word + 1];
  if (names.size() > MOST_BUFFERS) refuse(NOWHERE, "too many arguments");
  prepare_memory(int(names.size()));
  fill_slots(slots);
  if (prepared) prepared();
  call(entry, std::index_sequence_for<Parameters...>());
  settle_writes();
  sending += "z " + std::to_string(core.blocks) + "\n";
  flush();
  _exit(0);
}
 }  // namespace castsim
