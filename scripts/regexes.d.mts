/** Every regular expression of a source that may take more than linear time, as sentences. `file` is its name in them. */
export function slowRegexes(file: string, code: string): string[];
