/** Each set of files below a folder that import each other, as a sentence with one circle of it. */
export function circles(folder: string): string[];
