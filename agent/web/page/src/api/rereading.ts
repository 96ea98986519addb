// When something is read again: at once, but one reading at a time, and no more than half of the time.

/** Asked while it reads, it reads once more, after a rest as long as the reading took: what is dear is read less often. */
export class Rereading {
  private isBusy = false;
  private isAskedAgain = false;
  private isOver = false;

  constructor(
    private readonly read: () => Promise<void>,
    private readonly rest: (ms: number) => Promise<void> = (ms) => new Promise((done) => setTimeout(done, ms)),
    private readonly now: () => number = () => performance.now(),
  ) {}

  ask(): void {
    if (this.isBusy) this.isAskedAgain = true;
    else void this.work();
  }

  end(): void {
    this.isOver = true;
  }

  private async work(): Promise<void> {
    this.isBusy = true;
    do {
      this.isAskedAgain = false;
      const began = this.now();
      await this.read();
      if (this.isAskedAgain) await this.rest(this.now() - began);
    } while (this.isAskedAgain && !this.isOver);
    this.isBusy = false;
  }
}
