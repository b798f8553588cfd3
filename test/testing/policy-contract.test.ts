/** The contract itself is tested here by policies that break one promise each. Those that keep it: test/contract. */
import { Decision, type Policy, type StandalonePolicy, standalone } from 'kvroute';
import { policyContract, seededRandom } from 'kvroute/testing';
import { describe, expect, it } from 'vitest';

/** Names of the cases that a policy does not pass. */
function broken(policy: () => Partial<Policy>, capabilities = {}): string[] {
  const make = (runtime: object): StandalonePolicy =>
    standalone(
      { name: 'mine', needs: {}, decide: (_request, { workers }) => new Decision(workers[0]), ...policy() },
      runtime,
    );
  return policyContract(make, capabilities)
    .filter(({ run }) => {
      try {
        run();
        return false;
      } catch (error) {
        expect(error).toBeInstanceOf(Error);
        return true;
      }
    })
    .map(({ name }) => name);
}

describe('policyContract', () => {
  it('is passed by the simplest honest policy, which promises nothing else', () => {
    expect(broken(() => ({}))).toEqual([]);
    expect(broken(() => ({}), { reachesAll: true, loadAware: true })).toEqual([
      'reaches every worker of an idle fleet',
      'LR-26: avoids a hopeless queue',
    ]);
  });

  it('LB-12: finds a policy that learns while it decides', () => {
    const learning = (): Partial<Policy> => {
      let turn = 0;
      return { decide: (_request, { workers }) => new Decision(workers[turn++ % workers.length]) };
    };
    expect(broken(learning)).toContain('LB-12: explain changes nothing and foretells the decision');
  });

  it('LB-14a: finds one that looks past the candidates it is given', () => {
    const past = (): Partial<Policy> => ({
      decide: (_request, _candidates, { available }) => new Decision(available.workers[1]),
    });
    expect(broken(past)).toContain('LB-14a: excluded workers are never selected');
  });

  it('LB-3: finds one that draws from a generator of its own', () => {
    const shared = seededRandom(1);
    const drawing = (): Partial<Policy> => ({
      decide: (_request, { workers }) => new Decision(workers[Math.floor(shared() * workers.length)]),
    });
    expect(broken(drawing)).toContain('LB-3: the same seed and calls give the same decisions');
  });

  it('OB-93: finds one that tells a secret', () => {
    const telling = (): Partial<Policy> => ({
      decide: (request, { workers }) => new Decision(workers[0], `text ${request.text}`),
    });
    expect(broken(telling)).toEqual(['LB-13, OB-93: neither prompts nor keys show in records and explanations']);
  });

  it('LB-42: finds one that throws for hostile data', () => {
    const strict = (): Partial<Policy> => ({
      decide: (request, { workers }) => {
        if ((request.text?.length ?? 0) > 1_000_000) throw new RangeError('too long');
        return new Decision(workers[0]);
      },
    });
    expect(broken(strict)).toEqual(['LB-42: hostile requests are read as absent or refused at once']);
  });
});
