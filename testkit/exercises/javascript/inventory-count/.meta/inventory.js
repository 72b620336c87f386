export class Inventory {
  #articles = new Map();

  add(name, count = 1) {
    this.#articles.set(name, (this.#articles.get(name) ?? 0) + count);
  }

  remove(name, count = 1) {
    const left = (this.#articles.get(name) ?? 0) - count;
    if (left < 0) throw new Error(`not enough ${name}`);
    if (left === 0) this.#articles.delete(name);
    else this.#articles.set(name, left);
  }

  list() {
    return [...this.#articles].sort(([a], [b]) => (a < b ? -1 : 1));
  }
}
