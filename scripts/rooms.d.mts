/** Every place under the folder `src` where the plan of the house is not kept, as sentences. */
export function violations(src: string): string[];
