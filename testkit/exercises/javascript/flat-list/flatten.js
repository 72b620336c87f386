export function flatten(list, depth) {}

export function depthOf(list) {}
