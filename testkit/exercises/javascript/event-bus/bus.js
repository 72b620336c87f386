export class Bus {
  constructor() {
    this.listeners = {};
  }

  on(name, listener) {
    this.listeners[name] = this.listeners[name] || [];
    this.listeners[name].push(listener);
  }

  emit(name, value) {
    for (const listener of this.listeners[name] || []) {
      listener(value);
    }
  }
}
