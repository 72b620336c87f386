const CODES = ["GIFT", "TEN", "FIVER"];

export class Cart {
  constructor() {
    this.items = [];
    this.codes = [];
  }

  add(name, cents, count = 1) {
    this.items.push({ name, cents, count });
    return this;
  }

  apply(code) {
    const upper = code.toUpperCase();
    if (!CODES.includes(upper)) throw new Error(`unknown coupon ${code}`);
    if (this.codes.includes(upper)) throw new Error(`coupon ${code} was applied before`);
    this.codes.push(upper);
    return this;
  }

  coupons() {
    return [...this.codes];
  }

  total() {
    let sum = this.items.reduce((total, item) => total + item.cents * item.count, 0);
    if (this.codes.includes("GIFT") && this.items.length > 0) {
      sum -= Math.min(...this.items.map((item) => item.cents));
    }
    if (this.codes.includes("TEN")) sum -= Math.floor(sum / 10);
    if (this.codes.includes("FIVER")) sum -= 500;
    return Math.max(0, sum);
  }
}
