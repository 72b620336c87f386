export class Cart {
  constructor() {
    this.items = [];
  }

  add(name, cents, count = 1) {
    this.items.push({ name, cents, count });
    return this;
  }

  total() {
    return this.items.reduce((sum, item) => sum + item.cents, 0);
  }
}
