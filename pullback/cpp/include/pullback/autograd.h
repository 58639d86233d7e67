// torch::autograd::Function<T>: functions with a backward of their own in C++, whose nodes are nodes of pullback's engine.
//
// `T::apply(...)` goes over to a Python `Function` made for T, with T's forward and backward for its own; the context is
// the node, so what is saved lives as long as the graph, and compiled autograd sees it. Tensors among the arguments,
// alone, optional or in a TensorList, have edges; a gradient is returned for each of them and (undefined) for other arguments.
#pragma once
#include <cxxabi.h>

#include <cstdlib>
#include <typeinfo>

#include "callable.h"

namespace torch {
namespace autograd {

using Variable = at::Tensor;
using variable_list = std::vector<at::Tensor>;
using tensor_list = std::vector<at::Tensor>;

struct IndexRange : std::pair<size_t, size_t> {
  using pair::pair;
};

struct AutogradContext {
  std::unordered_map<std::string, c10::IValue> saved_data;

  explicit AutogradContext(pullback::Object node) : node_(std::move(node)) {}
  AutogradContext(const AutogradContext&) = delete;
  void save_for_backward(const variable_list& to_save) { node_.call("save_tensors", pullback::to_python(to_save)); }
  variable_list get_saved_variables() const {
    variable_list out;
    pullback::each(node_.attr("saved_tensors").get(), "saved tensors",
                   [&](PyObject* p) { out.push_back(pullback::tensor_or_undefined(p)); });
    return out;
  }
  void mark_dirty(const variable_list& inputs) { node_.call("mark_dirty_tensors", pullback::to_python(inputs)); }
  void mark_non_differentiable(const variable_list& outputs) {
    node_.call("mark_fixed_tensors", pullback::to_python(outputs));
  }
  void set_materialize_grads(bool on) { node_.call("set_materialize_grads", pullback::boolean(on)); }
  bool needs_input_grad(size_t tensor_input) const {
    return pullback::Cast<bool>::from(node_.call("needs_gradient", pullback::to_python(tensor_input)).get());
  }
  bool needs_input_grad(std::initializer_list<IndexRange> ranges) const {
    for (const IndexRange& r : ranges)
      for (size_t i = r.first; i < r.second; i++)
        if (needs_input_grad(i)) return true;
    return false;
  }
  const pullback::Object& node() const { return node_; }

 private:
  pullback::Object node_;
};

namespace detail {

// How an argument of `apply` goes over to Python and comes back to `forward`: tensors one by one, the rest as it is.
template <class T>
struct Passed {
  static void put(std::vector<pullback::Object>& out, std::vector<int64_t>&, const T& v) { out.push_back(pack(v)); }
  static T take(PyObject* const*& args, const int64_t*&) { return unpack(*args++); }

 private:
  template <class V>
  static auto has_cast(int) -> decltype(pullback::Cast<V>::from(nullptr), std::is_same<decltype(pullback::Cast<V>::from(nullptr)), V>());
  template <class>
  static std::false_type has_cast(...);
  static pullback::Object pack(const T& v) {
    if constexpr (decltype(has_cast<T>(0))::value) return pullback::to_python(v);
    else  // anything else is carried unseen
      return pullback::Object::steal(PyCapsule_New(new T(v), "pullback.value", [](PyObject* c) {
        delete static_cast<T*>(PyCapsule_GetPointer(c, "pullback.value"));
      }));
  }
  static T unpack(PyObject* p) {
    if constexpr (decltype(has_cast<T>(0))::value) return pullback::Cast<T>::from(p);
    else return *static_cast<T*>(PyCapsule_GetPointer(p, "pullback.value"));
  }
};
template <>
struct Passed<at::Tensor> {
  static void put(std::vector<pullback::Object>& out, std::vector<int64_t>&, const at::Tensor& v) {
    out.push_back(v.object());
  }
  static at::Tensor take(PyObject* const*& args, const int64_t*&) { return pullback::tensor_or_undefined(*args++); }
};
template <>
struct Passed<std::optional<at::Tensor>> {
  static void put(std::vector<pullback::Object>& out, std::vector<int64_t>&, const std::optional<at::Tensor>& v) {
    out.push_back(v ? v->object() : pullback::none());
  }
  static std::optional<at::Tensor> take(PyObject* const*& args, const int64_t*&) {
    at::Tensor t = pullback::tensor_or_undefined(*args++);
    return t.defined() ? std::optional<at::Tensor>(t) : std::nullopt;
  }
};
template <>
struct Passed<at::TensorList> {
  static void put(std::vector<pullback::Object>& out, std::vector<int64_t>& lengths, at::TensorList v) {
    for (const at::Tensor& t : v) out.push_back(t.object());
    lengths.push_back(static_cast<int64_t>(v.size()));
  }
  static variable_list take(PyObject* const*& args, const int64_t*& lengths) {
    variable_list out;
    for (int64_t n = *lengths++; n > 0; n--) out.push_back(pullback::tensor_or_undefined(*args++));
    return out;
  }
};
template <>
struct Passed<variable_list> {  // one argument without gradient, as PyTorch has it: pass a TensorList for edges
  static void put(std::vector<pullback::Object>& out, std::vector<int64_t>&, const variable_list& v) {
    out.push_back(pullback::to_python(v));
  }
  static variable_list take(PyObject* const*& args, const int64_t*&) {
    variable_list out;
    pullback::each(*args++, "tensors", [&](PyObject* p) { out.push_back(pullback::tensor_or_undefined(p)); });
    return out;
  }
};
struct Words : std::string {  // a string literal, kept
  using std::string::string;
  Words(const std::string& s) : std::string(s) {}
  operator const char*() const { return c_str(); }
};
template <>
struct Passed<Words> {
  static void put(std::vector<pullback::Object>& out, std::vector<int64_t>&, const char* v) {
    out.push_back(pullback::text(v));
  }
  static Words take(PyObject* const*& args, const int64_t*&) { return pullback::Cast<std::string>::from(*args++); }
};
template <class A>
struct Text {
  using type = A;
};
template <>
struct Text<const char*> {
  using type = Words;
};
template <class A>
using Kept = typename Text<std::decay_t<A>>::type;

inline pullback::Object gradients(const variable_list& made) { return pullback::to_python(std::vector<at::Tensor>(made)); }
inline pullback::Object outputs(const at::Tensor& made) { return made.object(); }
inline pullback::Object outputs(const variable_list& made) {
  std::vector<pullback::Object> items;
  for (const at::Tensor& t : made) items.push_back(t.object());
  return pullback::tuple_of(items);
}
template <class... T>
pullback::Object outputs(const std::tuple<T...>& made) { return pullback::to_python(made); }
inline void result(const pullback::Object& made, at::Tensor& out) { out = pullback::tensor_or_undefined(made.get()); }
inline void result(const pullback::Object& made, variable_list& out) {
  pullback::each(made.get(), "outputs", [&](PyObject* p) { out.push_back(pullback::tensor_or_undefined(p)); });
}
template <class... T>
void result(const pullback::Object& made, std::tuple<T...>& out) {
  out = pullback::Cast<std::tuple<T...>>::from(made.get());
}

inline std::string name_of(const std::type_info& type) {
  int status = 0;
  char* plain = abi::__cxa_demangle(type.name(), nullptr, nullptr, &status);
  std::string out = status == 0 ? plain : type.name();
  std::free(plain);
  return out;
}
inline void load(AutogradContext& ctx) {  // what the node keeps, as the C++ context has it
  pullback::Object kept = ctx.node().attr("saved_data");
  ctx.saved_data = pullback::Cast<std::unordered_map<std::string, c10::IValue>>::from(kept.get());
}
inline void store(AutogradContext& ctx) { ctx.node().call("keep_data", pullback::to_python(ctx.saved_data)); }

}  // namespace detail

template <class T>
struct Function {
  static constexpr bool is_traceable = false;  // whether compiled autograd may run `backward` on traced tensors

  template <class X = T, class... Args>
  static auto apply(Args&&... args) -> std::decay_t<decltype(X::forward(static_cast<AutogradContext*>(nullptr), std::forward<Args>(args)...))> {
    using R = std::decay_t<decltype(X::forward(static_cast<AutogradContext*>(nullptr), std::forward<Args>(args)...))>;
    pullback::Lock lock;
    const pullback::Object& made = class_of<X, detail::Kept<Args>...>();
    std::vector<pullback::Object> given;
    std::vector<int64_t> lengths;
    (detail::Passed<detail::Kept<Args>>::put(given, lengths, args), ...);
    R out;
    detail::result(pullback::bridge().call("apply_function", made, pullback::tuple_of(given),
                                           pullback::to_python(lengths)), out);
    return out;
  }

 private:
  template <class X, class... Args>
  static const pullback::Object& class_of() {  // one for each T and kinds of arguments
    static const pullback::Object* made = nullptr;
    return pullback::once(made, declared<X, Args...>);
  }
  template <class X, class... Args>
  static pullback::Object declared() {
    pullback::Object forward = pullback::callable(pullback::body_of(
        [](pullback::Object node, pullback::Object args, std::vector<int64_t> lengths) -> pullback::Object {
          AutogradContext ctx(std::move(node));
          PyObject* const* items = PySequence_Fast_ITEMS(args.get());
          const int64_t* counts = lengths.data();
          // Braces: arguments are taken in the order in which they are written.
          std::tuple<decltype(detail::Passed<Args>::take(items, counts))...> kept{
              detail::Passed<Args>::take(items, counts)...};
          (void)items, (void)counts;
          pullback::Object out = std::apply(
              [&](auto&... values) { return detail::outputs(X::forward(&ctx, values...)); }, kept);
          detail::store(ctx);
          return out;
        }));
    pullback::Object backward = pullback::callable(pullback::body_of(
        [](pullback::Object node, pullback::Object args) -> pullback::Object {
          AutogradContext ctx(std::move(node));
          detail::load(ctx);
          variable_list grads;
          pullback::each(args.get(), "gradients", [&](PyObject* p) { grads.push_back(pullback::tensor_or_undefined(p)); });
          pullback::Object out = detail::gradients(X::backward(&ctx, std::move(grads)));
          detail::store(ctx);
          return out;
        }));
    return pullback::bridge().call("declare_function", pullback::text(detail::name_of(typeid(X))), forward, backward,
                                   pullback::boolean(X::is_traceable));
  }
};

// ---- gradients from C++
inline variable_list grad(const variable_list& outputs, const variable_list& inputs, const variable_list& grad_outputs = {},
                          std::optional<bool> retain_graph = std::nullopt, bool create_graph = false,
                          bool allow_unused = false) {
  variable_list out;
  detail::result(pullback::bridge().call("grad", pullback::to_python(outputs), pullback::to_python(inputs),
                                         pullback::to_python(grad_outputs), pullback::to_python(retain_graph),
                                         pullback::boolean(create_graph), pullback::boolean(allow_unused)), out);
  return out;
}
inline void backward(const variable_list& tensors, const variable_list& grad_tensors = {},
                     std::optional<bool> retain_graph = std::nullopt, bool create_graph = false) {
  pullback::bridge().call("backward", pullback::to_python(tensors), pullback::to_python(grad_tensors),
                          pullback::to_python(retain_graph), pullback::boolean(create_graph));
}

}  // namespace autograd
using at::AutoGradMode;
using at::NoGradGuard;
}  // namespace torch
