export class Bus {
  constructor() {
    this.listeners = new Map();
  }

  on(name, listener) {
    return this.#add(name, { listener, once: false });
  }

  once(name, listener) {
    return this.#add(name, { listener, once: true });
  }

  #add(name, entry) {
    this.listeners.set(name, [...(this.listeners.get(name) ?? []), entry]);
    return () => this.#remove(name, entry);
  }

  #remove(name, entry) {
    const rest = (this.listeners.get(name) ?? []).filter((other) => other !== entry);
    this.listeners.set(name, rest);
  }

  emit(name, ...values) {
    const entries = this.listeners.get(name) ?? [];
    const errors = [];
    for (const entry of entries) {
      if (entry.once) this.#remove(name, entry);
      try {
        entry.listener(...values);
      } catch (error) {
        errors.push(error);
      }
    }
    if (errors.length > 0) throw errors[0];
    return entries.length;
  }
}
