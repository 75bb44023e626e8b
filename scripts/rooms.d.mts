/** Every violation of the plan of rooms under the folder `src`, as sentences. */
export function violations(src: string): string[];
