// Vector registers of the A5 while a vector function runs on the host: every instruction says which values it reads and
// makes, by number. Also the device compiler's own instructions on them (`vlds`, `vadd`, ...).
#pragma once

#include "castsim_device.hpp"

namespace castsim {
inline int launches = 0;  // vector functions that are open, one within another: one launch
inline long long registers_made = 0;
struct Scope {
  CASTSIM_CALL Scope() : Scope(CASTSIM_HERE) {}
  explicit Scope(const void *place) { if (launches++ == 0) tell(place, "enter"); }
  CASTSIM_CALL ~Scope() { if (--launches == 0) tell(CASTSIM_HERE, "leave"); }
  Scope(const Scope &) = delete;
 private:
  static void tell(const void *place, const char *what) {
    settle_writes();
    say("x", trail_of(place), what);
    end();
  }
};

// A register, predicate or alignment state holds the number of its value, 0 if it has none.
template <typename T, int Registers = 1> struct Vector {
  long long number = 0;
};
template <typename T> struct Vector<T, 2> {
  CASTSIM_CALL Vector() { refuse(CASTSIM_HERE, "RegTensor of two registers (RegTraitNumTwo) is not modelled"); }
};
template <typename T> constexpr bool is_vector = false;
template <typename T> constexpr bool is_vector<Vector<T>> = true;
inline const char *const COMPARISONS[] = {"lt", "gt", "eq", "le", "ge", "ne"};  // as AscendC numbers them
struct Predicate { long long number = 0; int bits = 32; };
struct Alignment { long long number = 0; };
struct Word { const char *key, *word; };
struct Number { long long value; const char *type; };
template <typename T> struct Memory { const T *at; bool offset = true; };  // by pointer and offset, or by pointer alone
template <typename T> Memory<T> exactly(const T *at) { return {at, false}; }

template <typename T> constexpr int LANE_BITS = bits_per_element<T> < 8 ? 8 : bits_per_element<T>;
template <typename T> constexpr int MASK_BITS = LANE_BITS<T> > 32 ? 32 : LANE_BITS<T>;

class Issue {
 public:
  Issue(const void *place, const std::string &mnemonic) : place_(place), mnemonic_(mnemonic) {}
  ~Issue() {
    settle_writes();
    say("x", trail_of(place_), mnemonic_);
    for (const std::string &word : words_) say(word);
    end();
  }
  Issue &masks(int bits) { return bits_ = bits, *this; }  // the lane width of predicates that follow; 0: their own
  template <typename T> Issue &add(const Vector<T> &from) {
    if (!from.number) refuse(place_, mnemonic_ + " reads a register that nothing was written to");
    if (bits_ < 0) bits_ = MASK_BITS<T>;
    return word(joined("v", from.number) + ',' + Element<T>::name());
  }
  Issue &add(const Predicate &from) {
    if (!from.number) refuse(place_, mnemonic_ + " reads a mask that has no value: CreateMask or UpdateMask comes first");
    return word(joined("k", from.number, bits_ > 0 ? bits_ : from.bits));
  }
  Issue &add(const Alignment &from) {
    if (!from.number) refuse(place_, mnemonic_ + " reads an alignment state that has no value");
    return word(joined("n", from.number));
  }
  template <typename T> Issue &add(const Memory<T> &memory) {
    return word(joined(memory.offset ? "p" : "q", (long long)(uintptr_t)memory.at) + ',' + Element<T>::name());
  }
  Issue &add(const Word &given) { return *given.key ? word(attribute(given.key, given.word)) : *this; }
  Issue &add(const Number &given) { return word(joined("i", given.value) + ',' + given.type); }
  template <typename T, typename N> Issue &scalar_of(N value) { return word(castsim::scalar<T>(T(value))); }
  template <typename T> Issue &makes(Vector<T> &to, const char *element = Element<T>::name()) {
    return to.number = ++registers_made, word(joined("V", to.number) + ',' + element);
  }
  Issue &makes(Predicate &to, int bits) {
    return to = {++registers_made, bits}, word(joined("K", to.number, bits));
  }
  Issue &makes(Alignment &to) { return to.number = ++registers_made, word(joined("N", to.number)); }

 private:
  const void *place_;
  std::string mnemonic_;
  Words words_;
  int bits_ = -1;
  Issue &word(const std::string &text) { return words_.push_back(text), *this; }
};

// An instruction on lanes: registers, predicates, words and a scalar of the first register's elements. Lanes that the
// mask leaves out are zero, or, if it merges, what they were.
template <typename T, typename... A> void lanes(const void *place, const char *mnemonic, Vector<T> &dst, bool merges, const A &...given) {
  const Vector<T> before = dst;
  Predicate mask;
  {
    Issue issue(place, mnemonic);
    if constexpr ((!is_vector<A> && ...)) issue.masks(MASK_BITS<T>);
    auto one = [&](const auto &each) {
      using E = std::remove_cvref_t<decltype(each)>;
      if constexpr (std::is_same_v<E, Predicate>) mask = each;
      if constexpr (requires { issue.add(each); }) issue.add(each);
      else issue.template scalar_of<T>(each);
    };
    (one(given), ...);
    issue.makes(dst);
  }
  if (!merges || !before.number || !mask.number) return;
  const Vector<T> made = dst;
  Issue(place, "vsel").add(made).add(before).masks(MASK_BITS<T>).add(mask).makes(dst);
}
template <typename T> long long lanes_left(long long count) { return std::max(count - 2048 / LANE_BITS<T>, 0ll); }
inline int digits_of(const char *name) {  // the width that a mode's name ends in
  const char *at = strrchr(name, 'B');
  return at && at > name && at[-1] == '_' ? std::min(atoi(at + 1), 32) : 0;
}
inline Word dist(const char *name) { return {strcmp(name, "NORM") ? "dist" : "", name}; }
// Loads and stores by distribution, of one register or two.
template <typename T, typename U> void load(const void *place, Vector<U> &dst, const T *from, const char *mode) {
  Issue(place, "vlds").add(Memory<T>{from}).add(dist(mode)).makes(dst);
}
template <typename T, typename U> void load(const void *place, Vector<U> &one, Vector<U> &other, const T *from, const char *mode) {
  Issue(place, "vldsx2").add(Memory<T>{from}).add(Word{"dist", mode}).makes(one).makes(other);
}
template <typename T, typename U> void store(const void *place, const T *to, const Vector<U> &src, const Predicate &mask, const char *mode) {
  const int bits = digits_of(mode);
  Issue(place, "vsts").add(src).add(Memory<T>{to}).masks(bits ? bits : MASK_BITS<U>).add(mask).add(dist(mode));
}
template <typename T, typename U>
void store(const void *place, const T *to, const Vector<U> &one, const Vector<U> &other, const Predicate &mask, const char *mode) {
  Issue(place, "vstsx2").add(one).add(other).add(Memory<T>{to}).add(mask).add(Word{"dist", mode});
}
template <typename T, typename U> void load_blocks(const void *place, Vector<U> &dst, const T *from, long long step, const Predicate &mask) {
  Issue(place, "vsldb").add(exactly(from)).add(Number{step, "i16"}).add(Number{0, "i16"}).masks(MASK_BITS<U>).add(mask).makes(dst);
}
template <typename T, typename U> void store_blocks(const void *place, const T *to, const Vector<U> &src, long long step, const Predicate &mask) {
  Issue(place, "vsstb").add(src).add(exactly(to)).add(Number{step, "i16"}).add(Number{0, "i16"}).add(mask);
}
template <typename T, typename U> void load_unaligned(const void *place, Vector<U> &dst, Alignment &state, const T *from) {
  const Alignment before = state;
  Issue(place, "vldus").add(exactly(from)).add(before).makes(dst).makes(state);
}
template <typename T, typename U> void store_unaligned(const void *place, const T *to, const Vector<U> &src, Alignment &state, long long count) {
  if (!state.number) Issue(place, "init_align").makes(state);
  const Alignment before = state;
  Issue(place, "vstus").add(before).add(Number{count, "i32"}).add(src).add(exactly(to)).add(Word{"mode", "NO_POST_UPDATE"}).makes(state);
}
template <typename T, typename U> void store_unaligned(const void *place, const T *to, const Vector<U> &src, Alignment &state) {  // as many bytes as AR counts
  if (!state.number) Issue(place, "init_align").makes(state);
  const Alignment before = state;
  Issue(place, "vstur").add(before).add(src).add(exactly(to)).add(Word{"mode", "POST_UPDATE"}).makes(state);
}
inline Predicate count_mask(const void *place, int bits, long long count) {
  Predicate mask;
  Issue(place, "plt_b" + std::to_string(bits)).add(Number{count, "i32"}).makes(mask, bits);
  return mask;
}
inline Predicate pattern_mask(const void *place, int bits, const char *pattern) {
  Predicate mask;
  Issue(place, "pset_b" + std::to_string(bits)).add(Word{"pattern", pattern}).makes(mask, bits);
  return mask;
}
template <typename... A> Predicate masks(const void *place, const char *mnemonic, int bits, const A &...given) {
  Predicate mask;
  Issue issue(place, mnemonic);
  issue.masks(bits);
  (issue.add(given), ...);
  issue.makes(mask, bits);
  return mask;
}
}  // namespace castsim

#define __VEC_SCOPE__ if (castsim::Scope castsim_scope; true)
#define CASTSIM_LAUNCH(NAME) template <auto Function, typename... A> CASTSIM_CALL void NAME(A &&...given) { \
    castsim::Scope scope(CASTSIM_HERE); \
    Function(std::forward<A>(given)...); }
CASTSIM_LAUNCH(VF_CALL) CASTSIM_LAUNCH(asc_vf_call)
