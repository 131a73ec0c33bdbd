/** Runs jobs side by side. @module */

/**
 * Runs jobs in their order, so many at a time: whenever one ends, the next begins. Resolves with
 * what they give, in order, when all have ended.
 */
export async function runBeside<T>(
  jobs: readonly (() => Promise<T>)[],
  count: number,
): Promise<T[]> {
  const results: T[] = [];
  let next = 0;
  const work = async () => {
    while (next < jobs.length) {
      const index = next++;
      results[index] = await jobs[index]!();
    }
  };
  await Promise.all(Array.from({ length: count }, work));
  return results;
}
