export function change(amount, coins) {
  // Your code here.
}
