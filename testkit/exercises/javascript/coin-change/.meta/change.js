export function change(amount, coins) {
  if (amount < 0) throw new RangeError("negative amount");
  const descending = [...coins].sort((a, b) => b - a);
  const best = [[]];
  for (let sum = 1; sum <= amount; sum += 1) {
    for (const coin of descending) {
      const rest = best[sum - coin];
      if (rest && (!best[sum] || rest.length + 1 < best[sum].length)) best[sum] = [...rest, coin];
    }
  }
  if (!best[amount]) throw new RangeError("cannot be paid");
  return best[amount].sort((a, b) => a - b);
}
