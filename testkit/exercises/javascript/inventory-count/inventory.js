const articles = new Map();

export class Inventory {
  add(name, count) {
    articles.set(name, (articles.get(name) || 0) + count);
  }

  remove(name, count) {
    articles.set(name, articles.get(name) - count);
  }

  list() {
    return [...articles];
  }
}
